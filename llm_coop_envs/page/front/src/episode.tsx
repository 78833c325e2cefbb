// One episode: its drawing in step with the talk.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, Reading, runs, served, useData, type Course, type Episode, type Frame, type Said } from "./data";
import { Scene } from "./drawings";
import { Chip, Gone, Shown, useKeys } from "./parts";
import { go, link, route } from "./route";

export interface Place {
  run: string;
  condition: string;
  seed: number;
}

// How often an episode that is being played or read has changed.
function changes({ run, condition, seed }: Place): string {
  const now = runs.value?.find((one) => one.run === run);
  if (!now) return "";
  const share = now.reading?.[`${condition}/${seed}`];
  if (share !== undefined) return `${share} %`;
  const told = Object.values(now.live ?? {}).map((one) => one.playing[`${condition}/${seed}`]?.events);
  return told.some((one) => one !== undefined) ? told.join() : "done";
}

function grows(episode: Episode): boolean {
  return episode.live || episode.reading !== null;
}

export function useEpisode(place: Place) {
  const [growing, note] = useState(false);
  const [missing, miss] = useState(false);
  // One that is not there yet is asked for again when its run goes on.
  const finished = missing ? runs.value?.find((one) => one.run === place.run)?.finished : "";
  const asked = useData<Episode>("episode", { ...place }, growing || missing ? `${changes(place)} ${finished}` : "");
  const unfinished = asked.data !== undefined && grows(asked.data);
  useEffect(() => {
    if (unfinished) note(true);
    miss(asked.error !== undefined);
  }, [unfinished, asked.error]);
  return asked;
}

// Frames around the one that is shown.
export function useFrames(place: Place, episode: Episode, at: number): { frames: (Frame | undefined)[]; problem: string } {
  const held = useRef<(Frame | undefined)[]>([]);
  const [, again] = useState(0);
  const [problem, tell] = useState("");
  const total = episode.rounds.length;
  const chunk = Math.max(1, Math.min(100, Math.floor(100_000 / Math.max(1, episode.players))));
  const name = `${place.run}\n${place.condition}\n${place.seed}`;
  const known = useRef<{ name: string; episode?: Episode }>({ name: "" });
  if (known.current.name !== name) held.current = [];
  // The last frame of an episode that is being played was taken in the middle of a round.
  else if (known.current.episode !== episode && known.current.episode && grows(known.current.episode)) held.current = held.current.slice(0, Math.max(0, known.current.episode.rounds.length - 1));
  known.current = { name, episode };
  useEffect(() => {
    let over = false;
    const wanted = new Set<number>([Math.floor(at / chunk)]);
    if (at + 1 < total) wanted.add(Math.floor(Math.min(total - 1, at + 2) / chunk));
    for (const one of wanted) {
      const first = one * chunk;
      const last = Math.min(total, first + chunk);
      let missing = false;
      for (let k = first; k < last; k++) missing ||= !held.current[k];
      if (!missing) continue;
      ask<Frame[]>("frames", { ...place, first, most: chunk }).then(
        (found) => {
          if (over) return;
          held.current = held.current.slice(); // with signals, components look at their properties before they draw again
          for (const frame of found) held.current[frame.place] = frame;
          tell("");
          again((count) => count + 1);
        },
        (error) => over || tell(error instanceof Reading ? "" : error.message),
      );
    }
    return () => {
      over = true;
    };
  }, [name, at, total, episode]);
  return { frames: held.current, problem };
}

// An episode's course by round, as far as it was played.
export function useCourse(place: Place, episode: Episode): Course | null {
  return useData<Course>("course", { ...place }, episode).data ?? null;
}

export function EpisodeView(place: Place) {
  const asked = useEpisode(place);
  return <Shown asked={asked}>{(episode) => <Loaded place={place} episode={episode} />}</Shown>;
}

function Loaded({ place, episode }: { place: Place; episode: Episode }) {
  const held = runs.value?.find((one) => one.run === place.run);
  const jumps = jumpsOf(episode);
  const { at, who, choose, to, scrubber } = useScrubber(episode, jumps, episode.rounds.length - 1);
  const { frames, problem } = useFrames(place, episode, at);
  const course = useCourse(place, episode);
  return (
    <>
      <div class="heading">
        <h1 title={place.condition}>{episode.title} <span class="quiet">seed {place.seed}</span></h1>
        {episode.live && <Chip state={held?.state.startsWith("paus") ? held.state : "playing"} />}
        {episode.reading !== null && <span class="quiet" role="status">Reading, {episode.reading} %: rounds and messages come as they are read</span>}
        <span class="quiet">{episode.scenario} · {episode.players.toLocaleString("en")} players{episode.end ? ` · ${episode.end}` : ""}</span>
        <span class="links">
          <a href={link(["run", place.run, "episode", place.condition, place.seed, "agents"])}>Agents</a>
          <a href={link(["compare"], { a: [place.run, place.condition, place.seed].map((one) => encodeURIComponent(one)).join("|") })}>Compare</a>
        </span>
      </div>
      <Gone run={place.run} />
      {problem && <p class="problem" role="alert">{problem}</p>}
      {scrubber}
      <Body place={place} episode={episode} frames={frames} at={at} who={who} choose={choose} to={to} course={course} />
      <p class="hidden" role="status">round {episode.rounds[at]}</p>
    </>
  );
}

export function placeOf(episode: Episode, round: number): number {
  const found = episode.rounds.findLastIndex((one) => one === round);
  return found < 0 ? 0 : found;
}

interface Jump {
  place: number;
  round: number;
  text: string;
}

export function jumpsOf(episode: Episode): Jump[] {
  return episode.moments.map((one) => ({ ...one, place: placeOf(episode, one.round) }));
}

// Which round and which player the address names, and what changes them: keys, and what is drawn as `scrubber`.
export function useScrubber(episode: Episode, jumps: Jump[], start: number) {
  const query = route.value.query;
  const total = episode.rounds.length;
  const at = Math.max(0, Math.min(total - 1, query.at === undefined ? start : Number(query.at) || 0));
  const who = query.who === undefined || query.who === "" ? null : Number(query.who);
  const [playing, run] = useState(false);
  const choose = (one: number | null) => go({ who: one ?? "" });
  // Without a round in the address, an episode is shown at its end, and one that is being played is followed.
  const to = (place: number) => go({ at: place >= total - 1 && start === total - 1 ? "" : Math.max(0, Math.min(total - 1, place)) });
  const play = (on: boolean) => {
    if (on && at === total - 1) to(0);
    run(on);
  };
  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => (at + 1 < total ? to(at + 1) : run(false)), 700);
    return () => clearInterval(timer);
  }, [playing, at, total]);
  useKeys((key, shift) => {
    const later = jumps.find((one) => one.place > at);
    const earlier = jumps.findLast((one) => one.place < at);
    if (key === "ArrowRight") to(shift ? (later?.place ?? at) : at + 1);
    else if (key === "ArrowLeft") to(shift ? (earlier?.place ?? at) : at - 1);
    else if (key === "Home") to(0);
    else if (key === "End") to(total - 1);
    else if (key === " ") play(!playing);
    else if (key === "]") choose(who === null ? 0 : Math.min(episode.players - 1, who + 1));
    else if (key === "[") choose(who === null ? 0 : Math.max(0, who - 1));
    else if (key === "Escape") choose(null);
    else return false;
    return true;
  });
  const scrubber = (
    <>
      <div class="scrubber">
        <button aria-label={playing ? "Stop playing" : "Play"} onClick={() => play(!playing)}>{playing ? "❚❚" : "▶"}</button>
        <button aria-label="Round before" disabled={at === 0} onClick={() => to(at - 1)}>‹</button>
        <div class="track">
          <input
            type="range" min={0} max={Math.max(0, total - 1)} value={at} aria-label="Round"
            aria-valuetext={`round ${episode.rounds[at]} of ${episode.rounds[total - 1]}`}
            onInput={(event) => to(Number(event.currentTarget.value))}
          />
          <div class="ticks" aria-hidden="true">
            {jumps.map((one) => <i style={{ left: `${(100 * one.place) / Math.max(1, total - 1)}%` }} />)}
          </div>
        </div>
        <button aria-label="Round after" disabled={at >= total - 1} onClick={() => to(at + 1)}>›</button>
        <output>round <b>{episode.rounds[at]}</b> <span class="quiet">of {episode.rounds[total - 1]}</span></output>
        {jumps.length > 0 && (
          <select aria-label="Jump to a moment" value={jumps.find((one) => one.place === at)?.place ?? ""} onChange={(event) => event.currentTarget.value !== "" && to(Number(event.currentTarget.value))}>
            <option value="">{jumps.length} {jumps.length === 1 ? "moment" : "moments"} …</option>
            {jumps.map((one) => <option value={one.place}>{one.round}: {one.text}</option>)}
          </select>
        )}
      </div>
    </>
  );
  return { at, who, choose, to, scrubber };
}

export function Body({ place, episode, frames, at, who, choose, to, course, plain = false }: {
  place: Place; episode: Episode; frames: (Frame | undefined)[]; at: number; who: number | null; choose: (who: number | null) => void;
  to: (place: number) => void; course: Course | null; plain?: boolean;
}) {
  const frame = frames[at];
  const sight = useData<{ cells: [number, number][]; lines: string[] }>(
    served && episode.sees && who !== null ? "sight" : null, { ...place, place: at, number: who ?? 0 },
  );
  return (
    <div class="episode">
      <div class="drawing">
        {sight.error && <p class="problem" role="alert">{sight.error}</p>}
        <Scene episode={episode} frames={frames} place={at} who={who} sight={sight.data ?? null} choose={choose} to={to} course={course} plain={plain} />
        <Who place={place} episode={episode} who={who} choose={choose} />
      </div>
      {frame && <Talk place={place} episode={episode} frame={frame} who={who} choose={choose} />}
    </div>
  );
}

function Who({ place, episode, who, choose }: { place: Place; episode: Episode; who: number | null; choose: (who: number | null) => void }) {
  if (!episode.names.length) return null;
  return (
    <p class="who">
      <label>
        Follow{" "}
        <select value={who ?? ""} onChange={(event) => choose(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}>
          <option value="">nobody</option>
          {episode.names.slice(0, 2000).map((name, k) => <option value={k}>{name}</option>)}
        </select>
      </label>
      {who !== null && <a href={link(["run", place.run, "episode", place.condition, place.seed, "agent", who])}>whole story</a>}
    </p>
  );
}

export function Talk({ place, episode, frame, who, choose }: { place: Place; episode: Episode; frame: Frame; who: number | null; choose: (who: number | null) => void }) {
  const hears = (one: { agent: number; hearers: number[] | null }) => who === null || one.agent === who || one.hearers === null || one.hearers.includes(who);
  const shown = frame.said.filter(hears);
  const name = (k: number) => episode.names[k] ?? `player ${k}`;
  return (
    <section class="talk" aria-label={`What was said in round ${frame.round}`}>
      <h2>
        Round {frame.round}{" "}
        {frame.said.length > 0 && <span class="quiet">{shown.length} of {frame.said.length}{frame.unsent ? " or more" : ""} messages{who !== null && ` said or heard by ${name(who)}`}</span>}
      </h2>
      <ol>
        {shown.map((one, at) => (
          <li key={at} class={one.agent === who ? "own" : ""}>
            <button class="plain" onClick={() => choose(one.agent === who ? null : one.agent)} style={{ color: episode.kind === "chart" ? `var(--c${one.agent % 8})` : undefined }}>{name(one.agent)}</button>
            <ToWhom said={one} episode={episode} />
            <p>{one.text}</p>
          </li>
        ))}
      </ol>
      {!shown.length && <p class="quiet">{frame.said.length ? `${name(who!)} said and heard nothing in this round.` : episode.talk || episode.live ? "Nothing was said in this round." : "Nobody talks in this episode."}</p>}
      {frame.unsent && <p class="quiet">More was said than is shown here; <a href={link(["run", place.run, "episode", place.condition, place.seed, "agents"])}>search the agents</a>.</p>}
    </section>
  );
}

const NAMED = 50; // listeners that are named

// To whom a message went, in words: few by name, many by their number, with the names behind it.
export function ToWhom({ said, episode }: { said: Said; episode?: Episode }) {
  const { hearers } = said;
  if (hearers === null) return <span class="quiet to"> to everyone</span>;
  const names = hearers.slice(0, NAMED).map((k) => episode?.names[k] ?? `player ${k}`);
  if (!names.length) return <span class="quiet to"> heard by nobody</span>;
  if (names.length <= 2) return <span class="quiet to"> to {names.join(" and ")}</span>;
  const more = hearers.length > NAMED ? ` and ${hearers.length - NAMED} more` : "";
  return <span class="quiet to" title={names.join(", ") + more}> to {hearers.length.toLocaleString("en")} {episode?.hearers ?? "others"}</span>;
}
