// All runs of the folder: filtered, sorted, labelled, chosen to be compared.
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { ordered, runs, served, type Run } from "./data";
import { Chip, clock, count, Empty, Head, money, Progress, Search, share, Steering, valued, when } from "./parts";
import { go, link, route } from "./route";

export function Spent({ run }: { run: Run }) {
  const used = run.used;
  const priced = used.unpriced < used.answers || !used.answers;
  const budget = run.budget.usd;
  return (
    <>
      {used.answers ? (priced ? money(spent(run)) : "price unknown") : "–"}
      {budget ? <span class="quiet"> of {money(budget)}</span> : null}
    </>
  );
}

export function spent(run: Run): number {
  return run.used.cost + (run.used.maybe_cost ?? 0);
}

const tokens = (run: Run) => run.used.prompt_tokens + run.used.completion_tokens;
const rate = (part: number, of: number) => (of ? part / of : null);

// What the columns are sorted by; runs that cannot be read have none of it.
const VALUES: Record<string, (run: Run) => number | string | null> = {
  study: (run) => run.study || run.run,
  state: (run) => run.state,
  progress: (run) => (run.problem ? null : rate(run.finished, run.total)),
  left: (run) => run.left ?? null,
  calls: (run) => run.calls || null,
  tokens: (run) => (run.problem ? null : tokens(run) || null),
  cost: (run) => (run.problem || !run.used.answers ? null : spent(run)),
  errors: (run) => (run.problem ? null : rate(run.errors, run.calls)),
  repaired: (run) => (run.problem ? null : rate(run.rates.repaired, run.rates.asked)),
  fallbacks: (run) => (run.problem ? null : rate(run.rates.fallbacks, run.rates.asked)),
  begun: (run) => run.started ?? null,
};
const WORDS = ["study", "state", "progress"];

function fits(run: Run, words: string[], state: string, tag: string): boolean {
  const text = [run.run, run.study, run.state, ...(run.models ?? []), ...(run.tags ?? []), run.note].join(" ").toLowerCase();
  return words.every((word) => text.includes(word)) && (!state || run.state.split(" ")[0] === state) && (!tag || (run.tags ?? []).includes(tag));
}

export function RunsView() {
  const all = runs.value;
  const [chosen, choose] = useState<string[]>([]);
  const { search = "", state = "", tag = "", sort = "-begun" } = route.value.query;
  if (all === null) return <p class="quiet" role="status">Looking for runs …</p>;
  if (!all.length) {
    return (
      <>
        <h1>Runs</h1>
        <Empty title="There is no run in this folder yet">
          <p>Begin one in a terminal; it appears here by itself:</p>
          <pre tabIndex={0} aria-label="Command">llm-coop run team_up</pre>
        </Empty>
      </>
    );
  }
  const states = [...new Set(all.map((run) => run.state.split(" ")[0]))].sort();
  const tags = [...new Set(all.flatMap((run) => run.tags ?? []))].sort();
  const fitting = all.filter((run) => fits(run, search.toLowerCase().split(/\s+/).filter(Boolean), state, tag));
  const by = sort.replace(/^-/, "");
  const shown = ordered(fitting, VALUES[by] ?? VALUES.begun, sort.startsWith("-"));
  const steers = (run: Run) => served && !run.problem && Object.keys(run.live ?? {}).length > 0;
  const models = all.some((run) => run.calls);
  const columns = ["study", "state", "progress", "left", ...(models ? ["calls", "tokens", "cost", "errors", "repaired", "fallbacks"] : []), "begun"];
  const pair = chosen.filter((name) => all.some((run) => run.run === name));
  const toggle = (name: string) => choose(pair.includes(name) ? pair.filter((one) => one !== name) : [...pair, name].slice(-2));
  return (
    <>
      <div class="heading">
        <h1>Runs <span class="quiet">{shown.length === all.length ? all.length : `${shown.length} of ${all.length}`}</span></h1>
        {all.length > 1 && (
          <span class="links">
            {pair.length === 2
              ? <a class="button" href={link(["compare"], { a: encodeURIComponent(pair[0]), b: encodeURIComponent(pair[1]) })}>Compare {pair[0]} and {pair[1]}</a>
              : <span class="quiet">{pair.length ? "Mark one more to compare" : "Mark two runs to compare them"}</span>}
          </span>
        )}
      </div>
      {all.length > 1 && (
        <form class="filters" role="search" aria-label="Runs" onSubmit={(event) => event.preventDefault()}>
          <Search name="search" label="Search" />
          <label>State
            <select value={state} onChange={(event) => go({ state: event.currentTarget.value })}>
              <option value="">any</option>
              {states.map((one) => <option value={one}>{one}</option>)}
            </select>
          </label>
          {tags.length > 0 && (
            <label>Tag
              <select value={tag} onChange={(event) => go({ tag: event.currentTarget.value })}>
                <option value="">any</option>
                {tags.map((one) => <option value={one}>{one}</option>)}
              </select>
            </label>
          )}
        </form>
      )}
      {!shown.length ? <Empty title="No run fits"><p><button onClick={() => go({ search: "", state: "", tag: "" })}>Show all {all.length}</button></p></Empty> : (
        <div class="scroll-x"><table class="cards rows">
          <caption class="hidden">Runs in this folder</caption>
          <thead>
            <tr>
              {all.length > 1 && <th scope="col"><span class="hidden">Compare</span></th>}
              {columns.map((column) => <Head key={column} column={column} sort={sort} start={WORDS.includes(column) ? "" : "-"} number={!WORDS.includes(column)} />)}
            </tr>
          </thead>
          <tbody>
            {shown.map((run) => (
              <Fragment key={run.run}>
              <tr class={steers(run) ? "steered" : ""}>
                {all.length > 1 && <td class="mark">{!run.problem && <input type="checkbox" checked={pair.includes(run.run)} aria-label={`Compare ${run.run}`} onChange={() => toggle(run.run)} />}</td>}
                <th scope="row">
                  {run.problem ? run.study || run.run : <a href={link(["run", run.run])}>{run.study}</a>}
                  <span class="quiet under">{[run.run !== run.study && run.run, ...(run.models ?? [])].filter(Boolean).join(" · ")}</span>
                  <Tags run={run} />
                </th>
                <td data-name="State"><Chip state={run.state} /></td>
                {run.problem ? <td colSpan={columns.length - 2} class="problem">{run.problem}</td> : <Cells run={run} models={models} />}
              </tr>
              {steers(run) && <tr class="steer"><td colSpan={columns.length + (all.length > 1 ? 1 : 0)}><Steering run={run} /></td></tr>}
              </Fragment>
            ))}
          </tbody>
        </table></div>
      )}
    </>
  );
}

function Cells({ run, models }: { run: Run; models: boolean }) {
  return (
    <>
      <td data-name="Progress"><Progress run={run} /></td>
      <td data-name="Left" class={valued(run.left)}>{clock(run.left)}</td>
      {models && (
        <>
          <td data-name="Calls" class={valued(run.calls || null)}>{count(run.calls || null)}</td>
          <td data-name="Tokens" class={valued(tokens(run) || null)}>{count(tokens(run) || null)}</td>
          <td data-name="Cost" class={valued(run.used.answers || null)}><Spent run={run} /></td>
          <td data-name="Errors" class={valued(run.calls || null)}>{run.calls ? share(run.errors, run.calls) : "–"}</td>
          <td data-name="Repaired" class={valued(run.rates.asked || null)}>{share(run.rates.repaired, run.rates.asked)}</td>
          <td data-name="Fallbacks" class={run.rates.asked && run.rates.fallbacks / run.rates.asked > 0.05 ? "number bad" : valued(run.rates.asked || null)}>{share(run.rates.fallbacks, run.rates.asked)}</td>
        </>
      )}
      <td data-name="Begun" class="number">{when(run.started)}</td>
    </>
  );
}

export function Tags({ run }: { run: Run }) {
  if (!run.tags?.length) return null;
  return <span class="tags">{run.tags.map((one) => <a class="tag" key={one} href={link([], { tag: one })}>{one}</a>)}</span>;
}
