// The kinds of drawing that scenarios' scenes come as; see llm_coop_envs/render/scenes/on_page.py.
import { Curves, Key, type Curve } from "./curves";
import type { Course, Episode, Frame } from "./data";
import { exact } from "./parts";

export const COLOURS = 8; // how many --c0, --c1, ... there are
const EXITS = 6; // how many --e0, --e1, ... there are: the colours of exits in the window, films and reports

export interface Drawing {
  episode: Episode;
  frames: (Frame | undefined)[];
  place: number;
  who: number | null;
  sight: { cells: [number, number][]; lines: string[] } | null;
  choose: (who: number | null) => void;
  to: (place: number) => void;
  course: Course | null;
  plain: boolean; // without curves, which are drawn elsewhere
}

export function Scene(drawing: Drawing) {
  const { frames, place, episode, course, plain, to } = drawing;
  const frame = frames[place];
  if (!frame) return <p class="quiet" role="status">Loading …</p>;
  const kinds: Record<string, (drawing: Drawing & { frame: Frame }) => any> = { room: Room, chart: Chart, line: Line };
  const Kind = kinds[episode.kind] ?? Table;
  return (
    <>
      <Kind {...drawing} frame={frame} />
      {course && !plain && episode.kind !== "chart" && <Below course={course} place={place} to={to} />}
    </>
  );
}

function nameOf(episode: Episode, who: number): string {
  return episode.names[who] ?? `player ${who}`;
}

function Room({ episode, frame, who, sight, choose }: Drawing & { frame: Frame }) {
  const { rows, cols, exits, desks, hears } = episode.still;
  const at: [number, number][] = frame.at;
  const inside = frame.status.filter((one: number) => one === 0).length;
  const speaks = new Set(frame.said.map((one) => one.agent));
  const heard = who === null ? null : new Set(frame.said.filter((one) => one.hearers === null || one.hearers.includes(who)).map((one) => one.agent));
  const size = at.length > 200 ? 0.36 : 0.42;
  return (
    <figure class="room" style={{ "--cols": cols, "--rows": rows }}>
      <svg viewBox={`-0.6 -0.6 ${cols + 0.2} ${rows + 0.2}`} preserveAspectRatio="xMinYMin" role="img"
        aria-label={`Room of ${rows} by ${cols}; ${inside} inside, ${exits.map((one: any, k: number) => `${frame.out[k]} out by ${one.name}`).join(", ")}`}>
        <rect class="wall" x={-0.5} y={-0.5} width={cols} height={rows} />
        <rect class="floor" x={0.5} y={0.5} width={cols - 2} height={rows - 2} />
        {sight?.cells.filter(([r, c]) => r > 0 && c > 0 && r < rows - 1 && c < cols - 1).map(([r, c]) => <rect class="seen" x={c - 0.5} y={r - 0.5} width={1} height={1} />)}
        {desks.map(([r, c]: [number, number]) => <rect class="desk" x={c - 0.5} y={r - 0.5} width={1} height={1} />)}
        {exits.map((one: any, k: number) =>
          one.cells.map(([r, c]: [number, number]) => (
            <rect class="exit" style={{ fill: `var(--e${k % EXITS})` }} x={c - 0.5} y={r - 0.5} width={1} height={1}><title>{one.name}</title></rect>
          )),
        )}
        {who !== null && hears !== null && frame.status[who] === 0 && (
          <circle class="hearing" cx={frame.from[who][1]} cy={frame.from[who][0]} r={hears} />
        )}
        {at.map(([r, c], k) => frame.status[k] === 1 ? null : (
          <circle
            key={k}
            class={`person ${k === who ? "chosen" : ""} ${frame.status[k] === 2 ? "disabled" : ""} ${heard && k !== who && speaks.has(k) && !heard.has(k) ? "unheard" : ""} ${speaks.has(k) ? "speaks" : ""}`}
            style={{ fill: frame.heading[k] < 0 ? "var(--faint)" : `var(--e${frame.heading[k] % EXITS})` }}
            cx={c} cy={r} r={size}
            onClick={() => choose(k === who ? null : k)}
          >
            <title>{nameOf(episode, k)}</title>
          </circle>
        ))}
      </svg>
      <figcaption>
        {exits.map((one: any, k: number) => (
          <span class="key"><i style={{ background: `var(--e${k % EXITS})` }} />{one.name}: {frame.out[k]} out</span>
        ))}
        <span class="key">{inside} inside</span>
      </figcaption>
      {sight && who !== null && (
        <section class="sees"><h3>What {nameOf(episode, who)} sees</h3><ul>{sight.lines.map((one) => <li>{one}</li>)}</ul></section>
      )}
    </figure>
  );
}

function curvesOf(course: Course, who: number | null): Curve[] {
  // Of a few players, one is seen behind another who does the same.
  const few = course.players.length <= 4;
  if (course.players.length) return course.players.map((one, k) => ({ ...one, colour: `--c${k % COLOURS}`, strong: who === k, dashed: few && k % 2 === 1 }));
  return course.series.map((one, k) => ({ ...one, colour: `--c${k % COLOURS}`, dashed: k > 0 }));
}

function Chart({ episode, frame, course, who, to, plain }: Drawing & { frame: Frame }) {
  const { unit } = episode.still;
  const { levels, band } = frame.levels ? frame : (episode.still as any);
  const values: (number | null)[] = frame.values;
  const few = course && !course.players.length && course.series.length > 0;
  return (
    <figure class="chart">
      {course && !plain && (
        <>
          <h3>{unit} by round</h3>
          <Curves rounds={course.rounds} curves={curvesOf(course, who)} levels={levels} band={band} cursor={frame.round} pick={(index) => to(course.places[index])}
            label={values.length
              ? `${unit} by round; in round ${frame.round}: ${episode.names.map((name, k) => `${name} ${exact(values[k])}`).join(", ")}; ${levels.map((one: any) => `${one.label} ${exact(one.value)}`).join(", ")}`
              : `${unit} by round; none yet`} />
          {few && <figcaption><Key curves={curvesOf(course, null)} /></figcaption>}
          <Sampled course={course} />
        </>
      )}
      {values.length > 0 && (
        <div class="scroll">
        <table>
          <caption class="hidden">Round {frame.round}</caption>
          <thead><tr><th scope="col">round {frame.round}</th><th scope="col" class="number">{unit}</th>{Object.keys(frame.more).map((one) => <th scope="col" class="number">{one}</th>)}</tr></thead>
          <tbody>
            {episode.names.map((name, k) => values[k] === undefined ? null : (
              <tr class={k === who ? "chosen" : ""}>
                <th scope="row"><i class="dot" style={{ background: `var(--c${k % COLOURS})` }} />{name}</th>
                <td class="number">{exact(values[k])}</td>
                {Object.values(frame.more as Record<string, number[]>).map((one) => <td class="number">{exact(one[k], 6)}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
        </div>
      )}
    </figure>
  );
}

export function Sampled({ course }: { course: Course }) {
  return course.every > 1 ? <p class="quiet under">Every {course.every}th round is drawn.</p> : null;
}

// What a drawing of one moment does not show: how the episode came there.
function Below({ course, place, to }: { course: Course; place: number; to: (place: number) => void }) {
  const curves = course.series.filter((one) => one.values.some((value) => value !== null)).slice(0, 6)
    .map((one, k) => ({ ...one, colour: exitColour(one.name, k, course) }));
  const at = course.places.findLastIndex((one) => one <= place);
  if (course.rounds.length < 3 || !curves.length) return null;
  return (
    <figure class="course">
      <Curves rounds={course.rounds} curves={curves} height={[130, 170]} cursor={course.rounds[Math.max(0, at)]} pick={(index) => to(course.places[index])}
        label={`By round: ${curves.map((one) => `${one.name}, at the end ${exact(one.values[one.values.length - 1])}`).join("; ")}`} />
      <figcaption><Key curves={curves} /></figcaption>
      <Sampled course={course} />
    </figure>
  );
}

// Exits have the colours that they have in the room; all of them together are drawn in ink.
function exitColour(name: string, k: number, course: Course): string {
  const exits = course.series.filter((one) => one.name.startsWith("out by ")).map((one) => one.name);
  return !exits.length ? `--c${k % COLOURS}` : exits.includes(name) ? `--e${exits.indexOf(name) % EXITS}` : "--ink";
}

function Line({ episode, frame, who, choose }: Drawing & { frame: Frame }) {
  const { low, high, what } = episode.still;
  const marks: { label: string; value: number }[] = frame.marks;
  const wide = 100, tall = 34;
  const x = (value: number) => (wide * (value - low)) / (high - low || 1);
  const winners = new Set<number>(frame.winners);
  const values: (number | null)[] = frame.values ?? [];
  const bins: number[] = frame.bins ?? [];
  const levels = new Map<number, number>();
  const dots = values.flatMap((value, k) => {
    if (value === null) return []; // who has left
    const spot = Math.round(x(value) / 1.6);
    const level = levels.get(spot) ?? 0;
    levels.set(spot, level + 1);
    return [{ value, k, level }];
  });
  const step = Math.min(1.7, (tall - 8) / Math.max(...levels.values(), 1));
  const most = Math.max(...bins, 1);
  const counted = dots.length || bins.reduce((sum, one) => sum + one, 0);
  return (
    <figure class="line">
      <svg viewBox={`-3 -3 ${wide + 6} ${tall + 9}`} role="img"
        aria-label={`Numbers of ${counted} players from ${low} to ${high}; ${marks.map((one) => `${one.label} ${exact(one.value)}`).join(", ")}`}>
        <line class="axis" x1={0} x2={wide} y1={tall} y2={tall} />
        {[0, 0.25, 0.5, 0.75, 1].map((part) => (
          <text class="tick" x={wide * part} y={tall + 4}>{exact(low + part * (high - low))}</text>
        ))}
        {bins.map((one, k) => <rect class="bin" x={(wide * k) / bins.length} width={(wide / bins.length) * 0.92} y={tall - ((tall - 8) * one) / most} height={((tall - 8) * one) / most} />)}
        {dots.map(({ value, k, level }) => (
          <circle key={k} class={`number-dot ${winners.has(k) ? "winner" : ""} ${k === who ? "chosen" : ""}`} cx={x(value)} cy={tall - 1 - level * step} r={0.75} onClick={() => choose(k === who ? null : k)}>
            <title>{nameOf(episode, k)}: {exact(value)}</title>
          </circle>
        ))}
        {marks.map((one, k) => (
          <line class={`mark mark${k}`} x1={x(one.value)} x2={x(one.value)} y1={k * 3} y2={tall} />
        ))}
        {marks.map((one, k) => (
          <text class={`mark mark${k}`} x={x(one.value) + 0.8} y={k * 3 + 1.6} text-anchor={x(one.value) > 75 ? "end" : "start"} dx={x(one.value) > 75 ? -1.6 : 0}>{one.label} {exact(one.value)}</text>
        ))}
      </svg>
      <figcaption>{what}; {counted.toLocaleString("en")} players{winners.size ? `, ${winners.size >= 1000 ? "1000 or more" : winners.size} ${winners.size === 1 ? "winner" : "winners"}` : ""}</figcaption>
    </figure>
  );
}

function Table({ episode, frame, who, choose }: Drawing & { frame: Frame }) {
  const columns = Object.entries((frame.players ?? {}) as Record<string, number[]>);
  const totals = Object.entries((frame.totals ?? {}) as Record<string, number>).filter(([, one]) => one !== null);
  return (
    <figure class="table">
      <div class="scroll" tabIndex={0} role="region" aria-label="Players">
        <table>
          <caption class="hidden">Players in round {frame.round}</caption>
          <thead><tr><th scope="col">player</th><th scope="col" class="number">choice</th>{columns.map(([name]) => <th scope="col" class="number">{name}</th>)}</tr></thead>
          <tbody>
            {episode.names.map((name, k) => (
              <tr class={k === who ? "chosen" : ""}>
                <th scope="row"><button class="plain" onClick={() => choose(k === who ? null : k)}>{name}</button></th>
                <td class="number">{exact(frame.choices?.[k])}</td>
                {columns.map((column) => <td class="number">{exact(column[1][k])}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <figcaption>{totals.map(([name, one]) => <span class="key">{name} {exact(one)}</span>)}</figcaption>
    </figure>
  );
}
