// What a run answers: the report's sentences, and a picture of each condition that grows while the run is played.
import { useState } from "preact/hooks";
import { useData, type Condition, type Detail, type Measured, type Run } from "./data";
import { aligned, count, Empty, ends, exact, Mean, Shown, useAgain } from "./parts";

interface Card {
  topic: string;
  verdict: string;
  sentence: string;
  certainty: string;
  caveats: string[];
}

export function Answers({ held, run }: { held: Detail; run: Run }) {
  const [again, look] = useState(0);
  const asked = useData<{ cards: Card[]; note: string; growing?: boolean }>(run.finished ? "answers" : null, { run: run.run }, `${run.finished} ${run.state} ${again}`);
  useAgain(asked.data?.growing, again, look);
  const scenarios = [...new Set(held.found.map((one) => one.scenario))];
  return (
    <section class="answers" aria-label="Answers">
      <h2>Answers {!held.report && run.state === "complete" && <span class="quiet">the report says more: <code>llm-coop report {run.run}</code></span>}</h2>
      {run.finished ? <Shown asked={asked}>{(told) => <Cards {...told} />}</Shown> : null}
      {run.finished
        ? scenarios.map((one) => <Strips key={one} conditions={held.found.filter((arm) => arm.scenario === one)} />)
        : <Empty title="No episode is finished yet"><p>Means and intervals of each condition appear here with the first ones.</p></Empty>}
      {held.unread > 0 && <p class="quiet" role="status">Reading {count(held.unread)} more episodes …</p>}
    </section>
  );
}

function Cards({ cards, note }: { cards: Card[]; note: string }) {
  return (
    <>
      <div class="answer-cards">{cards.map((one) => (
        <article class="answer" key={one.topic + one.sentence}>
          <h3>{one.topic} <span class="chip verdict">{one.verdict}</span></h3>
          <p class="sentence">{one.sentence}</p>
          {one.certainty && <p class="quiet">{one.certainty}.</p>}
          {one.caveats.map((why) => <p class="caveat">{why}</p>)}
        </article>
      ))}</div>
      {note && <p class="caveat">{note}</p>}
    </>
  );
}

// A row for each condition: its episodes as dots, their mean, its interval.
function Strips({ conditions }: { conditions: Condition[] }) {
  const names = [...new Set(conditions.flatMap((one) => Object.keys(one.headline)))];
  const [wanted, choose] = useState("");
  const name = names.includes(wanted) ? wanted : names[0];
  if (!name) return null;
  const shown = conditions.flatMap((one): [Condition, Measured][] => (one.headline[name] ? [[one, one.headline[name]]] : []));
  const every = shown.flatMap(([, one]) => [...one.values, one.low ?? one.mean, one.high ?? one.mean]);
  const low = Math.min(...every), high = Math.max(...every);
  const x = (value: number) => (high > low ? `${2 + (96 * (value - low)) / (high - low)}%` : "50%");
  const called = (wanted: string) => conditions.find((one) => one.headline[wanted])?.headline[wanted].name ?? "";
  const text = aligned(shown.flatMap(([, one]) => ends(one)));
  const missing = conditions.length - shown.length;
  return (
    <figure class="strips">
      <div class="heading">
        <h3>{conditions[0].scenario}</h3>
        {names.length > 1
          ? <label class="inline">Measure <select value={name} onChange={(event) => choose(event.currentTarget.value)}>{names.map((one) => <option value={one}>{called(one)}</option>)}</select></label>
          : <span>{called(name)}</span>}
      </div>
      <p class="quiet">{shown[0]?.[1].about}</p>
      <div class="strip-rows">
        {shown.map(([condition, one], k) => (
          <div class="strip" key={condition.name}>
            <span class="words">{condition.title} <span class="quiet">{condition.finished} {condition.finished === 1 ? "episode" : "episodes"}</span></span>
            <svg height="22" role="img" aria-label={`${condition.title}: ${called(name)}, mean ${exact(one.mean)}${one.low === null ? "" : `, 95 % interval ${exact(one.low, 3)} to ${exact(one.high, 3)}`}, ${one.n} episodes`} style={{ color: `var(--c${k % 8})` }}>
              {one.values.map((value, at) => <circle cx={x(value)} cy={11 + ((at * 7) % 9) - 4} r="2.4" />)}
              {one.low !== null && one.high !== null && <line x1={x(one.low)} x2={x(one.high)} y1="11" y2="11" />}
              <rect class="mean" x={x(one.mean)} y="3" width="3" height="16" transform="translate(-1.5)" />
            </svg>
            <span class="number"><Mean of={one} text={text} /></span>
          </div>
        ))}
        <div class="strip scale" aria-hidden="true">
          <span />
          {high > low ? <span class="ends"><span>{text(low)}</span><span>{text(high)}</span></span> : <span class="ends same">{text(low)}</span>}
          <span class="number quiet">mean, 95 % interval</span>
        </div>
      </div>
      {missing > 0 && <p class="quiet">{missing === 1 ? "One condition has" : `${missing} conditions have`} no finished episode yet.</p>}
    </figure>
  );
}
