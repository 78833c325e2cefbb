// Small parts that several views use.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Asked, Measured, Run } from "./data";
import { connected, order, runs, served } from "./data";
import { go, route } from "./route";

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) >= 1e6) return `${(value / 1e6).toFixed(value >= 1e7 ? 0 : 1)}M`;
  if (Math.abs(value) >= 1e4) return `${(value / 1e3).toFixed(0)}k`;
  return value.toLocaleString("en");
}

export function exact(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined) return "–";
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 6 }).replace(/^-0$/, "0");
}

export function money(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return `$${value < 1 ? value.toFixed(4) : value.toFixed(2)}`;
}

export function share(part: number, of: number): string {
  return of ? `${((100 * part) / of).toFixed(part && part / of < 0.01 ? 2 : 1)} %` : "–";
}

export function clock(seconds: number | null): string {
  if (seconds === null) return "–";
  const minutes = Math.round(seconds / 60);
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

export function bytes(value: number | undefined): string {
  if (!value) return "–";
  return value > 1e9 ? `${(value / 1e9).toFixed(1)} GB` : `${(value / 1e6).toFixed(0)} MB`;
}

export function when(time: string | null): string {
  return time ? new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) : "–";
}

export function Chip({ state, note }: { state: string; note?: string }) {
  return <span class={`chip ${state.split(" ")[0]}`} title={note || undefined}>{state}</span>;
}

// A cell of a number; on a narrow screen one without a value is left out.
export function valued(value: number | null | undefined): string {
  return value === null || value === undefined ? "number none" : "number";
}

// A measure's name as words.
export function worded(name: string): string {
  return name.replaceAll("_", " ");
}

// Numbers of one column with as many decimals as its largest needs for three or four digits, so that they align.
export function aligned(values: (number | null | undefined)[]): (value: number | null | undefined) => string {
  const known = values.filter((one): one is number => one !== null && one !== undefined);
  const largest = Math.max(0, ...known.map(Math.abs));
  const decimals = known.every(Number.isInteger) ? 0 : Math.max(0, Math.min(6, 3 - Math.max(0, Math.floor(Math.log10(largest || 1)))));
  return (value) => (value === null || value === undefined ? "–" : (Math.abs(value) < 0.5 / 10 ** decimals ? 0 : value).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }));
}

// The numbers that `Mean` writes of a measure.
export function ends(of: Measured): (number | null)[] {
  return [of.mean, of.low, of.high];
}

export function Mean({ of, text = aligned(ends(of)) }: { of: Measured; text?: (value: number | null) => string }) {
  return (
    <>
      {text(of.mean)} <span class="quiet">{of.low === null || of.high === null ? `${of.n} episode` : of.low === of.high ? "always" : `(${text(of.low)} to ${text(of.high)})`}</span>
    </>
  );
}

// Whole episodes, and behind them the rounds of those that are in play.
export function Progress({ run }: { run: Run }) {
  const playing = Object.values(run.live).flatMap((live) => Object.values(live.playing));
  const shares = playing.map((one) => one.share).filter((one): one is number => typeof one === "number");
  const begun = shares.reduce((sum, one) => sum + one, 0);
  const total = run.total || 1;
  const inPlay = !playing.length ? "" : shares.length
    ? `${playing.length} in play, ${Math.round((100 * begun) / shares.length)} % of their rounds`
    : `${playing.length} in play`;
  const text = `${run.finished.toLocaleString("en")} of ${run.total.toLocaleString("en")} episodes`;
  return (
    <span class="progress">
      <span class="bar" role="progressbar" aria-label={`Episodes of ${run.study}`} aria-valuemin={0} aria-valuemax={run.total} aria-valuenow={run.finished} aria-valuetext={inPlay ? `${text}, ${inPlay}` : text}>
        <i style={{ width: `${(100 * run.finished) / total}%` }} />
        <i class="begun" style={{ width: `${(100 * begun) / total}%` }} />
      </span>
      <span class="under number">{text}</span>
      {inPlay && <span class="under number quiet">{inPlay}</span>}
    </span>
  );
}

export function Fact({ name, children, note }: { name: string; children: ComponentChildren; note?: string }) {
  return (
    <div class="fact" title={note}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

// What was read of a run stays in sight when the run is deleted.
export function Gone({ run }: { run: string }) {
  if (!served || !runs.value || runs.value.some((one) => one.run === run)) return null;
  return <p class="problem" role="alert">{run}: is not there any more; what was read of it is still shown.</p>;
}

// What is asked for, or in a sentence why it is not there; the rest of the page goes on.
export function Shown<T>({ asked, children }: { asked: Asked<T>; children: (data: T) => ComponentChildren }) {
  if (asked.error && asked.data !== undefined) return <><p class="problem" role="alert">{asked.error}</p>{children(asked.data)}</>;
  if (asked.error) return <p class="problem" role="alert">{asked.error}</p>;
  if (asked.reading) return <p class="quiet" role="status">Reading for the first time: {asked.reading} …</p>;
  if (asked.data === undefined) return <p class="quiet" role="status">Loading …</p>;
  return <>{children(asked.data)}</>;
}

export function Steering({ run }: { run: Run }) {
  const [problem, tell] = useState("");
  const [most, setMost] = useState("");
  const lives = Object.values(run.live);
  if (!served || !connected.value || !lives.length || run.state === "stopping") return null;
  const give = (what: string, value?: number) => order(run.run, what, value).then(() => tell(""), (error) => tell(error.message));
  const paused = lives.every((one) => one.held);
  const limit = lives.map((one) => one.limit ?? one.most).find((one) => one);
  return (
    <div class="steering">
      {paused ? (
        <button onClick={() => give("resume")}>Resume</button>
      ) : (
        <button onClick={() => give("pause")}>Pause</button>
      )}
      <button
        onClick={() => confirm("Stop this run? Answers under way are kept, and it can be continued.") && give("stop")}
      >
        Stop
      </button>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (Number(most) >= 1) give("limit", Number(most));
        }}
      >
        <label class="inline">
          at most{" "}
          <input type="number" min="1" value={most} placeholder={limit ? String(limit) : ""} aria-label={`At most so many at a time in ${run.study}`} onInput={(event) => setMost(event.currentTarget.value)} />
          {" "}at a time
        </label>
        <button>Set</button>
      </form>
      {problem && <p class="problem" role="alert">{problem}</p>}
    </div>
  );
}

// A text that narrows what is shown, kept in the address.
export function Search({ name, label, type = "search", before = "" }: { name: string; label: string; type?: "search" | "number"; before?: string }) {
  const given = (route.value.query[name] ?? "").replace(before, "");
  const [text, set] = useState(given);
  // The address changes the text only when somebody else changed it: what is typed meanwhile is not taken back.
  const known = useRef(given);
  useEffect(() => {
    if (given !== known.current) set(given);
    known.current = given;
  }, [given]);
  useEffect(() => {
    if (text === known.current) return;
    const timer = setTimeout(() => {
      known.current = text;
      go({ [name]: text && before + text, first: "" });
    }, 250);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <label>{label}<input {...({ type } as object)} step="any" value={text} onInput={(event) => set(event.currentTarget.value)} /></label>
  );
}

// The head of a column by which a table can be sorted; the order is kept in the address.
export function Head({ column, sort, title = worded(column), start = "", number = false, note }: {
  column: string; sort: string; title?: string; start?: "" | "-"; number?: boolean; note?: string;
}) {
  const [here, other] = [`${start}${column}`, start ? column : `-${column}`];
  const sorted = sort.replace(/^-/, "") === column && (sort.startsWith("-") ? "descending" : "ascending");
  return (
    <th scope="col" class={number ? "number" : ""} aria-sort={sorted || undefined} title={note}>
      <button class="plain" onClick={() => go({ sort: sort === here ? other : here, first: "" })}>
        {title[0].toUpperCase() + title.slice(1)}
      </button>
    </th>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="empty"><p><b>{title}</b></p>{children}</div>;
}

// Ask again in a moment, as long as there is more to come.
export function useAgain(more: unknown, times: number, look: (times: number) => void): void {
  useEffect(() => {
    if (!more) return;
    const timer = setTimeout(() => look(times + 1), 800);
    return () => clearTimeout(timer);
  }, [more, times]);
}

export function useKeys(act: (key: string, shift: boolean) => boolean): void {
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      const at = event.target as HTMLElement;
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      if (/^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName) && (at as HTMLInputElement).type !== "range") return;
      if (event.key === " " && /^(BUTTON|A|SUMMARY)$/.test(at.tagName)) return;
      if (act(event.key, event.shiftKey)) event.preventDefault();
    };
    document.addEventListener("keydown", hear);
    return () => document.removeEventListener("keydown", hear);
  });
}

export function Trace({ values }: { values: number[] }) {
  if (values.length < 2) return <span class="number">{exact(values[0])}</span>;
  const low = Math.min(...values);
  const span = Math.max(...values) - low;
  if (!span) return <span class="number">{exact(low)}</span>;
  const points = values.map((one, at) => `${(60 * at) / (values.length - 1)},${15 - (14 * (one - low)) / span}`).join(" ");
  return (
    <span class="trace">
      <svg width="62" height="16" viewBox="-1 0 62 16" aria-hidden="true">
        <polyline points={points} fill="none" stroke="currentColor" />
      </svg>
      <span class="number">{exact(values[values.length - 1])}</span>
    </span>
  );
}
