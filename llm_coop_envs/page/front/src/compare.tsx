// Two episodes side by side: of two runs, of two conditions, or branches from the branching round on.
import { useState } from "preact/hooks";
import { runs, useData, type Detail, type Episode } from "./data";
import { Body, jumpsOf, placeOf, useEpisode, useFrames, useScrubber, type Place } from "./episode";
import { exact, Gone, Shown } from "./parts";
import { go, route } from "./route";

function placed(text: string | undefined): Place | null {
  const [run, condition, seed] = (text ?? "").split("|").map(decodeURIComponent);
  return run && condition && seed !== undefined ? { run, condition, seed: Number(seed) } : null;
}

function written(place: Place): string {
  return [place.run, place.condition, place.seed].map((one) => encodeURIComponent(one)).join("|");
}

export function CompareView() {
  const a = placed(route.value.query.a);
  const b = placed(route.value.query.b);
  const runA = useData<Detail>(a ? "run" : null, { run: a?.run ?? "" });
  const runB = useData<Detail>(b ? "run" : null, { run: b?.run ?? "" });
  return (
    <>
      <h1>Compare</h1>
      <div class="choosing">
        <Choice name="a" label="First" place={a} run={runA.data} />
        <Choice name="b" label="Second" place={b} run={runB.data} />
      </div>
      {(runA.error || runB.error) && <p class="problem" role="alert">{runA.error ?? runB.error}</p>}
      {a && b ? <Pair key={written(a) + written(b)} a={a} b={b} runs={[runA.data, runB.data]} /> : <p class="quiet">Choose two episodes.</p>}
    </>
  );
}

function Choice({ name, label, place, run }: { name: string; label: string; place: Place | null; run?: Detail }) {
  // What was chosen holds until the address names another run.
  const [picked, pick] = useState({ beside: place?.run, run: place?.run ?? "" });
  const chosen = picked.beside === place?.run ? picked.run : place?.run ?? "";
  const asked = useData<Detail>(chosen && chosen !== run?.run ? "run" : null, { run: chosen });
  const held = chosen === run?.run ? run : asked.data;
  const condition = held?.found.find((one) => one.name === place?.condition) ?? held?.found[0];
  const seeds = useData<{ rows: { seed: number; state: string }[] }>(
    held && condition ? "episodes" : null, { run: chosen, condition: condition?.name ?? "", first: 0, most: 500 },
  );
  const there = seeds.data?.rows.filter((one) => one.state !== "waiting") ?? [];
  const set = (next: Place) => go({ [name]: written(next) });
  const fitting = place && place.run === chosen && condition?.name === place.condition;
  return (
    <fieldset>
      <legend>{label}</legend>
      <label>Run
        <select value={chosen} onChange={(event) => pick({ beside: place?.run, run: event.currentTarget.value })}>
          <option value="">–</option>
          {runs.value?.filter((one) => !one.problem).map((one) => <option value={one.run}>{one.run}</option>)}
        </select>
      </label>
      <label>Condition
        <select value={fitting ? place.condition : ""} onChange={(event) => set({ run: chosen, condition: event.currentTarget.value, seed: place?.seed ?? 0 })}>
          {!fitting && <option value="">–</option>}
          {held?.found.map((one) => <option value={one.name}>{one.title}</option>)}
        </select>
      </label>
      <label>Seed
        <select value={fitting ? place.seed : ""} disabled={!fitting} onChange={(event) => set({ ...place!, seed: Number(event.currentTarget.value) })}>
          {!there.some((one) => one.seed === place?.seed) && <option value={place?.seed}>{place?.seed ?? "–"}</option>}
          {there.map((one) => <option value={one.seed}>{one.seed}</option>)}
        </select>
      </label>
    </fieldset>
  );
}

function Pair({ a, b, runs: [runA, runB] }: { a: Place; b: Place; runs: (Detail | undefined)[] }) {
  const first = useEpisode(a);
  const second = useEpisode(b);
  return (
    <Shown asked={first}>
      {(one) => <Shown asked={second}>{(other) => <Both a={a} b={b} one={one} other={other} runA={runA} runB={runB} />}</Shown>}
    </Shown>
  );
}

function Both({ a, b, one, other, runA, runB }: { a: Place; b: Place; one: Episode; other: Episode; runA?: Detail; runB?: Detail }) {
  const branched = (runA?.branch ?? runB?.branch)?.at;
  const longer = one.rounds.length >= other.rounds.length ? one : other;
  const start = branched === undefined ? 0 : placeOf(longer, branched);
  const jumps = jumpsOf(longer);
  if (branched !== undefined) jumps.unshift({ round: branched, place: start, text: "the branches part" });
  const { at, who, choose, scrubber } = useScrubber(longer, jumps, start);
  return (
    <>
      <Measures a={a} b={b} runA={runA} runB={runB} />
      {scrubber}
      <div class="pair">
        <Half place={a} episode={one} round={longer.rounds[at]} who={who} choose={choose} />
        <Half place={b} episode={other} round={longer.rounds[at]} who={who} choose={choose} />
      </div>
    </>
  );
}

function Half({ place, episode, round, who, choose }: { place: Place; episode: Episode; round: number; who: number | null; choose: (who: number | null) => void }) {
  const found = episode.rounds.findLastIndex((one) => one <= round);
  const at = Math.max(0, found);
  const { frames, problem } = useFrames(place, episode, at);
  const followed = who !== null && who < episode.players ? who : null;
  return (
    <section aria-label={`${place.run}, ${place.condition}, seed ${place.seed}`}>
      <h2>{place.run} <span class="quiet">{place.condition} seed {place.seed}{episode.rounds[at] !== round ? ` · ended in round ${episode.rounds[at]}` : ""}</span></h2>
      <Gone run={place.run} />
      {problem && <p class="problem" role="alert">{problem}</p>}
      <Body place={place} episode={episode} frames={frames} at={at} who={followed} choose={choose} />
    </section>
  );
}

function Measures({ a, b, runA, runB }: { a: Place; b: Place; runA?: Detail; runB?: Detail }) {
  const of = (place: Place, run?: Detail) => run?.found.find((one) => one.name === place.condition)?.headline ?? {};
  const first = of(a, runA);
  const second = of(b, runB);
  const names = Object.keys(first).filter((one) => one in second);
  if (!names.length || (a.run === b.run && a.condition === b.condition)) return null;
  return (
    <table>
      <caption>Means of the two conditions; reports say what of it is more than chance</caption>
      <thead><tr><th scope="col">measure</th><th scope="col" class="number">first</th><th scope="col" class="number">second</th><th scope="col" class="number">difference</th></tr></thead>
      <tbody>
        {names.map((one) => (
          <tr title={first[one].about}>
            <th scope="row">{one.replaceAll("_", " ")}</th>
            <td class="number">{exact(first[one].mean)}</td>
            <td class="number">{exact(second[one].mean)}</td>
            <td class="number">{exact(second[one].mean - first[one].mean)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
