// Two whole runs, or two episodes: of two runs, of two conditions, or branches from the branching round on.
import { Curves, Key } from "./curves";
import { runs, useData, type Course, type Detail, type Episode, type Listing, type Measured } from "./data";
import { Body, jumpsOf, placeOf, useCourse, useEpisode, useFrames, useScrubber, type Place } from "./episode";
import { exact, Gone, Mean, Shown } from "./parts";
import { go, route } from "./route";

function placed(text: string | undefined): Place | null {
  const [run, condition, seed] = (text ?? "").split("|").map(decodeURIComponent);
  return run && condition && seed !== undefined ? { run, condition, seed: Number(seed) } : null;
}

function written(place: Place): string {
  return [place.run, place.condition, place.seed].map((one) => encodeURIComponent(one)).join("|");
}

// The run that is named, whether with or without an episode.
function runOf(text: string | undefined): string {
  return decodeURIComponent((text ?? "").split("|")[0]);
}

export function CompareView() {
  const { a: textA, b: textB } = route.value.query;
  const a = placed(textA), b = placed(textB);
  const [nameA, nameB] = [runOf(textA), runOf(textB)];
  const runA = useData<Detail>(nameA ? "run" : null, { run: nameA });
  const runB = useData<Detail>(nameB ? "run" : null, { run: nameB });
  const whole = !a && !b && nameA && nameB;
  return (
    <>
      <h1>Compare</h1>
      <div class="choosing">
        <Choice key={`a${nameA}`} name="a" label="First" place={a} run={runA.data} named={nameA} />
        <Choice key={`b${nameB}`} name="b" label="Second" place={b} run={runB.data} named={nameB} />
      </div>
      {(runA.error || runB.error) && <p class="problem" role="alert">{runA.error ?? runB.error}</p>}
      {a && b ? <Pair key={written(a) + written(b)} a={a} b={b} runs={[runA.data, runB.data]} />
        : whole ? <WholeRuns a={nameA} b={nameB} runs={[runA.data, runB.data]} />
        : <p class="empty">Choose two runs, or an episode of each.</p>}
    </>
  );
}

const WHOLE = "*";

function Choice({ name, label, place, run, named }: { name: string; label: string; place: Place | null; run?: Detail; named: string }) {
  const condition = run?.found.find((one) => one.name === place?.condition);
  const seeds = useData<Listing>(run && condition ? "episodes" : null, { run: named, condition: condition?.name ?? "", first: 0, most: 500 });
  const there = seeds.data?.rows.filter((one) => one.state !== "waiting") ?? [];
  const mixed = new Set(run?.found.map((one) => one.scenario)).size > 1;
  const first = (title: string) => ({ run: named, condition: title, seed: run!.found.find((one) => one.name === title)!.first_seed });
  return (
    <fieldset>
      <legend>{label}</legend>
      <label>Run
        <select value={named} onChange={(event) => go({ [name]: encodeURIComponent(event.currentTarget.value) })}>
          <option value="">–</option>
          {runs.value?.filter((one) => !one.problem).map((one) => <option value={one.run}>{one.run}</option>)}
        </select>
      </label>
      <label>Condition
        <select value={condition?.name ?? WHOLE} disabled={!run} onChange={(event) =>
          go({ [name]: event.currentTarget.value === WHOLE ? encodeURIComponent(named) : written(first(event.currentTarget.value)) })}>
          <option value={WHOLE}>the whole run</option>
          {run?.found.map((one) => <option value={one.name}>{mixed ? `${one.scenario}: ${one.title}` : one.title}</option>)}
        </select>
      </label>
      {condition && place && (
        <label>Seed
          <select value={place.seed} onChange={(event) => go({ [name]: written({ ...place, seed: Number(event.currentTarget.value) }) })}>
            {!there.some((one) => one.seed === place.seed) && <option value={place.seed}>{place.seed}</option>}
            {there.map((one) => <option value={one.seed}>{one.seed}</option>)}
          </select>
        </label>
      )}
    </fieldset>
  );
}

// What two runs differ by, as llm-coop compare says it, and all means side by side.
function WholeRuns({ a, b, runs: [one, other] }: { a: string; b: string; runs: (Detail | undefined)[] }) {
  const asked = useData<{ findings: string[]; summary: string }>("versus", { run: a, other: b });
  const shared = one && other ? one.found.filter((arm) => other.found.some((second) => second.name === arm.name)) : [];
  return (
    <>
      <section class="answer" aria-label="What the runs differ by">
        <Shown asked={asked}>
          {(held) => <>{held.findings.map((text) => <p><b>{text}</b></p>)}<p>{held.summary}</p></>}
        </Shown>
      </section>
      {shared.map((arm) => (
        <section key={arm.name}>
          <h2>{arm.title} <span class="quiet">{arm.scenario}</span></h2>
          <Means first={arm.headline} second={other!.found.find((second) => second.name === arm.name)!.headline} />
        </section>
      ))}
      {one && other && !shared.length && !asked.error && <p class="empty">No condition has the same name in both runs.</p>}
    </>
  );
}

function Means({ first, second, caption = "" }: { first: Record<string, Measured>; second: Record<string, Measured>; caption?: string }) {
  const names = Object.keys(first).filter((name) => name in second);
  if (!names.length) return <p class="empty">No episode of both is finished yet.</p>;
  return (
    <div class="scroll"><table class="means">
      <caption class={caption ? "" : "hidden"}>{caption || "Means with 95 % intervals"}</caption>
      <thead><tr>{["Measure", "First", "Second", "Difference"].map((title, k) => <th scope="col" class={k ? "number" : ""}>{title}</th>)}</tr></thead>
      <tbody>
        {names.map((name) => (
          <tr title={first[name].about}>
            <th scope="row">{first[name].name}</th>
            <td class="number"><Mean of={first[name]} /></td>
            <td class="number"><Mean of={second[name]} /></td>
            <td class="number">{exact(second[name].mean - first[name].mean)}</td>
          </tr>
        ))}
      </tbody>
    </table></div>
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
  const start = branched === undefined ? longer.rounds.length - 1 : placeOf(longer, branched);
  const jumps = jumpsOf(longer);
  if (branched !== undefined) jumps.unshift({ round: branched, place: start, text: "the branches part" });
  const { at, who, choose, to, scrubber } = useScrubber(longer, jumps, start);
  const round = longer.rounds[at];
  const courses = [useCourse(a, one), useCourse(b, other)];
  const half = { round, who, choose, to };
  return (
    <>
      <Measures a={a} b={b} runA={runA} runB={runB} />
      {courses[0] && courses[1] && (
        <Together first={courses[0]} second={courses[1]} still={[one.still, other.still]} round={round} pick={(next) => to(placeOf(longer, next))} />
      )}
      {scrubber}
      <div class="pair">
        <Half place={a} episode={one} {...half} />
        <Half place={b} episode={other} {...half} />
      </div>
    </>
  );
}

// Both courses on one scale, and below them how far the second is above the first.
function Together({ first, second, still, round, pick }: { first: Course; second: Course; still: [any, any]; round: number; pick: (round: number) => void }) {
  const shared = first.series.map((one) => one.name).filter((name) => second.series.some((one) => one.name === name));
  const name = shared.includes(route.value.query.of) ? route.value.query.of : shared[0];
  if (!name) return <p class="quiet">These two have no course in common: they are of different kinds.</p>;
  const rounds = [...new Set([...first.rounds, ...second.rounds])].sort((a, b) => a - b);
  const along = (course: Course) => {
    const values = course.series.find((one) => one.name === name)!.values;
    const byRound = new Map(course.rounds.map((one, k) => [one, values[k]]));
    return rounds.map((one) => byRound.get(one) ?? null);
  };
  const [one, other] = [along(first), along(second)];
  const apart = rounds.map((_, k) => (one[k] === null || other[k] === null ? null : other[k]! - one[k]!));
  const curves = [{ name: "first", values: one, colour: "--c0" }, { name: "second", values: other, colour: "--c1", dashed: true }];
  const { levels, band } = levelsOf(still, name === `mean ${first.unit}`);
  const known = apart.filter((value): value is number => value !== null);
  const end = known[known.length - 1];
  const chosen = (index: number) => pick(rounds[index]);
  return (
    <section class="both" aria-label="Both courses">
      <div class="heading">
        <h2>{shared.length > 1 ? (
          <label>Course of <select value={name} onChange={(event) => go({ of: event.currentTarget.value })}>{shared.map((one) => <option value={one}>{one}</option>)}</select></label>
        ) : `Course of ${name}`}</h2>
        <span><Key curves={curves} /></span>
      </div>
      <Curves rounds={rounds} curves={curves} height={[200, 300]} levels={levels} band={band} cursor={round} pick={chosen}
        label={`${name} of both by round; at the end first ${exact(one.findLast((value) => value !== null))}, second ${exact(other.findLast((value) => value !== null))}`} />
      <h3>Second minus first</h3>
      <Curves rounds={rounds} curves={[{ name: "difference", values: apart, colour: "--c2" }]} height={[110, 130]} zero cursor={round} pick={chosen}
        label={`Second minus first by round; in the last round of both ${exact(end)}`} />
    </section>
  );
}

// Levels that both have are drawn once; others say whose they are.
function levelsOf([one, other]: [any, any], fits: boolean): { levels: { label: string; value: number }[]; band: [number, number] | null } {
  if (!fits || !one.levels || !other.levels) return { levels: [], band: null };
  if (JSON.stringify([one.levels, one.band]) === JSON.stringify([other.levels, other.band])) return { levels: one.levels, band: one.band };
  const named = (levels: { label: string; value: number }[], whose: string) => levels.map((level) => ({ ...level, label: `${whose}: ${level.label}` }));
  return { levels: [...named(one.levels, "first"), ...named(other.levels, "second")], band: null };
}

function Half({ place, episode, round, who, choose, to }: {
  place: Place; episode: Episode; round: number; who: number | null; choose: (who: number | null) => void; to: (place: number) => void;
}) {
  const at = Math.max(0, episode.rounds.findLastIndex((one) => one <= round));
  const { frames, problem } = useFrames(place, episode, at);
  const followed = who !== null && who < episode.players ? who : null;
  return (
    <section aria-label={`${place.run}, ${place.condition}, seed ${place.seed}`}>
      <h2>{place.run} <span class="quiet">{episode.title} seed {place.seed}{episode.rounds[at] !== round ? ` · ended in round ${episode.rounds[at]}` : ""}</span></h2>
      <Gone run={place.run} />
      {problem && <p class="problem" role="alert">{problem}</p>}
      <Body place={place} episode={episode} frames={frames} at={at} who={followed} choose={choose} to={to} course={null} plain />
    </section>
  );
}

function Measures({ a, b, runA, runB }: { a: Place; b: Place; runA?: Detail; runB?: Detail }) {
  const of = (place: Place, run?: Detail) => run?.found.find((one) => one.name === place.condition)?.headline ?? {};
  const [first, second] = [of(a, runA), of(b, runB)];
  if (!Object.keys(first).some((one) => one in second) || (a.run === b.run && a.condition === b.condition)) return null;
  return (
    <details class="aside">
      <summary>Means of the two conditions</summary>
      <Means first={first} second={second} caption="The report says what of it is more than chance." />
    </details>
  );
}
