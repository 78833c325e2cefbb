// A run's episodes as a table: sorted, filtered, searched, page by page.
import { useState } from "preact/hooks";
import { useData, type Detail, type EpisodeRow, type Listing, type Run } from "./data";
import { aligned, Chip, count, Empty, exact, Head, money, Search, share, Shown, useAgain, valued, worded } from "./parts";
import { go, link, route } from "./route";

const PAGE = 50;

const OPENED = ["finished", "playing"];
const STATES = ["finished", "playing", "failed", "waiting"];

export function EpisodeTable({ held, run }: { held: Detail; run: Run }) {
  const { condition = "", state = "", search = "", sort = "", first: from = "0" } = route.value.query;
  const first = Number(from) || 0;
  const [again, look] = useState(0);
  const playing = Object.values(run.live).flatMap((live) => Object.keys(live.playing)).join();
  const asked = useData<Listing>("episodes", { run: run.run, condition, state, search, sort, first, most: PAGE }, `${run.finished} ${playing} ${again}`);
  const unread = asked.data?.unread || asked.data?.reading;
  useAgain(unread, again, look);
  const mixed = new Set(held.found.map((one) => one.scenario)).size > 1;
  const filtered = condition || state || search;
  return (
    <section class="episodes" aria-label="Episodes">
      <h2>Episodes</h2>
      <form class="filters" role="search" aria-label="Episodes" onSubmit={(event) => event.preventDefault()}>
        <Search name="search" label="Search" />
        <label>Condition
          <select value={condition} onChange={(event) => go({ condition: event.currentTarget.value, first: "", sort: "" })}>
            <option value="">any</option>
            {held.found.map((one) => <option value={one.name}>{mixed ? `${one.scenario}: ${one.title}` : one.title}</option>)}
          </select>
        </label>
        <label>State
          <select value={state} onChange={(event) => go({ state: event.currentTarget.value, first: "" })}>
            <option value="">any</option>
            {STATES.map((one) => <option value={one}>{one}</option>)}
          </select>
        </label>
      </form>
      <Shown asked={asked}>
        {(told) => told.total === 0
          ? <Empty title={filtered ? "No episode fits" : "There is no episode yet"}>{filtered && <p><button onClick={() => go({ search: "", state: "", condition: "", first: "" })}>Show all</button></p>}</Empty>
          : <Rows held={held} run={run} told={told} first={first} sort={sort} condition={condition} />}
      </Shown>
    </section>
  );
}

function Rows({ held, run, told, first, sort, condition }: { held: Detail; run: Run; told: Listing; first: number; sort: string; condition: string }) {
  const arms = held.found.filter((one) => !condition || one.name === condition);
  // Columns of measures need one scenario: others measure other things.
  const alike = new Set(arms.map((one) => one.scenario)).size === 1;
  const measures = alike ? [...new Set(arms.flatMap((one) => Object.keys(one.headline)))] : [];
  const measured = (name: string) => arms.find((one) => one.headline[name])?.headline[name];
  const called = (name: string) => measured(name)?.name ?? worded(name);
  const texts = Object.fromEntries(measures.map((name) => [name, aligned(told.rows.map((one) => one.measures[name]))]));
  const models = run.models.length > 0;
  const scenario = (one: EpisodeRow) => held.found.find((arm) => arm.name === one.condition)?.scenario;
  return (
    <>
      <p class="pager" role="status">
        <span>{told.total.toLocaleString("en")} {told.total === 1 ? "episode" : "episodes"}{told.total > PAGE ? `, ${first + 1} to ${Math.min(first + PAGE, told.total)}` : ""}</span>
        {told.total > PAGE && (
          <>
            <button disabled={first === 0} onClick={() => go({ first: Math.max(0, first - PAGE) || "" }, true)}>Before</button>
            <button disabled={first + PAGE >= told.total} onClick={() => go({ first: first + PAGE }, true)}>Next</button>
          </>
        )}
        {told.reading && <span class="quiet">Reading {told.reading}: cost comes with it.</span>}
      </p>
      <div class="scroll-x"><table class="cards rows">
        <caption class="hidden">Episodes of this run</caption>
        <thead>
          <tr>
            <Head column="condition" sort={sort} />
            <Head column="seed" sort={sort} number />
            <Head column="state" sort={sort} />
            {measures.map((name) => <Head key={name} column={name} sort={sort} number title={called(name)} note={measured(name)?.about} />)}
            {!alike && <th scope="col">Headline measure</th>}
            {models && <><Head column="cost" sort={sort} number /><Head column="fallbacks" sort={sort} number /></>}
          </tr>
        </thead>
        <tbody>
          {told.rows.map((one) => (
            <tr key={`${one.condition}/${one.seed}`}>
              <th scope="row">{!OPENED.includes(one.state) ? one.title : <a href={link(["run", run.run, "episode", one.condition, one.seed])}>{one.title}<span class="hidden"> seed {one.seed}</span></a>}{!alike && <span class="quiet under">{scenario(one)}</span>}</th>
              <td data-name="Seed" class="number">{one.seed}</td>
              <td data-name="State"><Chip state={one.state} note={one.problem} />{one.share !== null && <span class="quiet"> {Math.round(100 * one.share)} %</span>}</td>
              {measures.map((name) => <td key={name} data-name={called(name)} class={valued(one.measures[name])}>{texts[name](one.measures[name])}</td>)}
              {!alike && <td data-name="Headline measure" class="words"><First row={one} held={held} /></td>}
              {models && (
                <>
                  <td data-name="Cost" class={valued(one.cost ?? (one.tokens || null))}>{one.cost === null && one.tokens ? <span class="quiet">{count(one.tokens)} tokens</span> : money(one.cost)}</td>
                  <td data-name="Fallbacks" class={one.asked && one.fallbacks! / one.asked > 0.05 ? "number bad" : valued(one.asked || null)}>{one.asked ? share(one.fallbacks ?? 0, one.asked) : "–"}</td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table></div>
    </>
  );
}

function First({ row, held }: { row: EpisodeRow; held: Detail }) {
  const headline = held.found.find((one) => one.name === row.condition)?.headline ?? {};
  const name = Object.keys(headline).find((one) => row.measures[one] !== undefined);
  return name ? <span title={headline[name].about}>{headline[name].name} {exact(row.measures[name])}</span> : <>–</>;
}
