// All agents of an episode, paged and filtered; and one agent's whole story.
import { useState } from "preact/hooks";
import { runs, useData, type Agent, type Call, type Episode, type Story } from "./data";
import { ToWhom, useEpisode, type Place } from "./episode";
import { count, exact, Fact, Gone, Head, money, Search, Shown, Trace } from "./parts";
import { go, link, route } from "./route";

const PAGE = 50;
const COLUMNS: [string, string, string][] = [
  ["number", "Agent", ""], ["", "Policy", ""], ["", "Persona", ""], ["last", "Choices", "number"], ["said", "Said", "number"],
  ["flags", "Corrected", "number"], ["", "Calls", "number"], ["", "Repairs", "number"], ["", "Tokens", "number"], ["", "Cost", "number"],
];
const OF_MODELS = ["Calls", "Repairs", "Tokens", "Cost"];

const MOST_KINDS = 40; // from more on, a part of the name is typed

function Choose({ name, label, of }: { name: string; label: string; of: Record<string, number> }) {
  if (Object.keys(of).length > MOST_KINDS) return <Search name={name} label={label} before="~" />;
  return (
    <label>{label}
      <select value={route.value.query[name] ?? ""} onChange={(event) => go({ [name]: event.currentTarget.value, first: "" })}>
        <option value="">any</option>
        {Object.entries(of).map(([one, number]) => <option value={one}>{one} ({count(number)})</option>)}
      </select>
    </label>
  );
}

function Chosen({ episode, values }: { episode: Episode; values: number[] }) {
  if (!episode.options) return <Trace values={values} />;
  return <span>{values.slice(-6).map((one) => episode.options![String(one)] ?? one).join(" → ") || "–"}</span>;
}

export function AgentsView(place: Place) {
  const asked = useEpisode(place);
  return <Shown asked={asked}>{(episode) => <Agents place={place} episode={episode} />}</Shown>;
}

function Agents({ place, episode }: { place: Place; episode: Episode }) {
  const { first: from = "0", sort = "number", ...query } = route.value.query;
  const first = Number(from) || 0;
  const asked = useData<{ total: number; counted?: boolean; rows: Agent[]; reading?: string }>("agents", { ...query, ...place, first, most: PAGE, sort }, episode);
  const path = ["run", place.run, "episode", place.condition, place.seed, "agent"];
  const models = (runs.value?.find((one) => one.run === place.run)?.models?.length ?? 1) > 0;
  const personas = Object.keys(episode.personas).length > 0;
  const has = (column: string) => (column === "Persona" ? personas : models || !OF_MODELS.includes(column));
  return (
    <>
      <h1>Agents <span class="quiet">{episode.title} seed {place.seed} · {episode.players.toLocaleString("en")}</span></h1>
      <Gone run={place.run} />
      <form class="filters" role="search" aria-label="Agents" onSubmit={(event) => event.preventDefault()}>
        <Search name="name" label="Name" />
        <Choose name="policy" label="Policy" of={episode.policies} />
        {personas && <Choose name="persona" label="Persona" of={episode.personas} />}
        {models && <Search name="model" label="Model" />}
        {episode.options ? (
          <label>Last choice
            <select value={query.low ?? ""} onChange={(event) => go({ low: event.currentTarget.value, high: event.currentTarget.value, first: "" })}>
              <option value="">any</option>
              {Object.entries(episode.options).map(([one, name]) => <option value={one}>{name}</option>)}
            </select>
          </label>
        ) : (
          <>
            <Search name="low" label="Last choice from" type="number" />
            <Search name="high" label="to" type="number" />
          </>
        )}
        <Search name="said" label="Said" />
      </form>
      <Shown asked={asked}>
        {(held) => (
          <>
            <p class="pager" role="status">
              <span>{held.total.toLocaleString("en")} {held.counted === false && "or more "}agents{held.total > PAGE ? `, ${first + 1} to ${Math.min(first + PAGE, held.total)}` : ""}</span>
              {held.total > PAGE && (
                <>
                  <button disabled={first === 0} onClick={() => go({ first: Math.max(0, first - PAGE) }, true)}>Before</button>
                  <button disabled={first + PAGE >= held.total} onClick={() => go({ first: first + PAGE }, true)}>Next</button>
                </>
              )}
              {held.reading && <span class="quiet">Reading {held.reading}: calls, tokens and cost come with it.</span>}
            </p>
            <table class="cards rows">
              <caption class="hidden">Agents</caption>
              <thead>
                <tr>
                  {COLUMNS.filter(([, name]) => has(name)).map(([column, name, kind]) => column
                    ? <Head key={name} column={column} title={name} sort={sort} number={kind === "number"} />
                    : <th key={name} scope="col" class={kind}>{name}</th>)}
                </tr>
              </thead>
              <tbody>
                {held.rows.map((one) => (
                  <tr key={one.number}>
                    <th scope="row"><a href={link([...path, one.number])}>{one.name}</a></th>
                    <td data-name="Policy" class="words">{one.policy ?? "–"}</td>
                    {has("Persona") && <td data-name="Persona" class="words">{one.persona || "–"}</td>}
                    <td data-name="Choices" class="number"><Chosen episode={episode} values={one.choices} /></td>
                    <td data-name="Said" class="number">{one.said}</td>
                    <td data-name="Corrected" class="number">{one.flags}</td>
                    {models && (
                      <>
                        <td data-name="Calls" class="number">{one.calls_made || "–"}</td>
                        <td data-name="Repairs" class="number">{one.calls_made ? one.repairs : "–"}</td>
                        <td data-name="Tokens" class="number">{one.tokens ? count(one.tokens) : "–"}</td>
                        <td data-name="Cost" class="number">{money(one.cost)}</td>
                      </>
                    )}
                  </tr>
                ))}
              </tbody>
            </table>
          </>
        )}
      </Shown>
    </>
  );
}

export function StoryView({ number, ...place }: Place & { number: number }) {
  const about = useEpisode(place);
  const asked = useData<Story>("story", { ...place, number }, about.data);
  return (
    <Shown asked={asked}>
      {(story) => <Told place={place} story={story} episode={about.data} />}
    </Shown>
  );
}

function Told({ place, story, episode }: { place: Place; story: Story; episode?: Episode }) {
  const steps = [...new Set([...story.calls.map((one) => one.step), ...story.said.map((one) => one.step)])].sort((a, b) => a - b);
  const rounds = new Map(story.said.map((one) => [one.step, one.round]));
  const [most, more] = useState(100);
  const name = (k: number) => episode?.names[k] ?? `player ${k}`;
  return (
    <>
      <h1>{story.name} <span class="quiet">{place.condition} seed {place.seed}</span></h1>
      <Gone run={place.run} />
      <dl class="facts">
        <Fact name="Policy">{story.policy ?? "–"}</Fact>
        {story.persona && <Fact name="Persona">{story.persona}</Fact>}
        <Fact name="Choices">{episode ? <Chosen episode={episode} values={story.choices} /> : <Trace values={story.choices} />}</Fact>
        <Fact name="Corrected" note="messages and choices that the environment had to correct">{story.flags}</Fact>
        <Fact name="Calls">{story.calls_made}</Fact>
        <Fact name="Repairs">{story.repairs}</Fact>
        <Fact name="Tokens">{count(story.tokens)}</Fact>
        <Fact name="Cost">{money(story.cost)}</Fact>
      </dl>
      {!steps.length && <p class="empty">It was asked nothing, and nothing was said to it.</p>}
      <ol class="story">
        {steps.slice(0, most).map((step) => (
          <li key={step}>
            <h2>step {step}{rounds.has(step) && <span class="quiet"> round {rounds.get(step)}</span>}</h2>
            {story.calls.filter((one) => one.step === step).map((one) => <Question key={one.id} run={place.run} call={one} />)}
            {story.said.filter((one) => one.step === step).map((one) => (
              <p class={one.own ? "said own" : "said"}><b>{one.own ? "said" : `heard ${name(one.agent)}`}</b>{one.own && <ToWhom said={one} episode={episode} />} {one.text}</p>
            ))}
          </li>
        ))}
      </ol>
      {steps.length > most && <button onClick={() => more(most + 200)}>{steps.length - most} more steps</button>}
    </>
  );
}

interface Answer {
  messages: { role: string; text: string }[];
  settings: Record<string, unknown>;
  reply: { text?: string; reasoning?: string; refusal?: string; finish_reason?: string; model?: string; usage?: Record<string, number> };
  latency: number | null;
  cost: number | null;
  error: string | null;
}

function Question({ run, call }: { run: string; call: Call }) {
  const [open, set] = useState(false);
  const asked = useData<Answer>(open ? "call" : null, { run, number: call.id });
  const label = call.attempt ? `repair ${call.attempt}` : "";
  return (
    <details class={call.failed ? "call failed" : "call"} onToggle={(event) => set(event.currentTarget.open)}>
      <summary>
        asked <b>{call.call}</b> {label && <span class="chip">{label}</span>}
        {call.call === "summary" && <span class="chip">memory</span>}
        {call.failed ? <span class="chip unreadable">no answer</span> : null}
        <span class="quiet"> {call.model} · {count(call.tokens)} tokens · {money(call.cost)}</span>
      </summary>
      <Shown asked={asked}>
        {(held) => (
          <>
            {held.messages.map((one) => <Text name={one.role} text={one.text} />)}
            {held.reply.reasoning && <Text name="reasoning" text={held.reply.reasoning} />}
            {held.error ? <Text name="error" text={held.error} /> : <Text name="answer" text={held.reply.text || held.reply.refusal || ""} strong />}
            <p class="quiet">
              {Object.entries(held.settings).map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`).join(" · ")}
              {held.latency !== null && ` · ${exact(held.latency, 3)} s`}
              {held.reply.finish_reason && held.reply.finish_reason !== "stop" && ` · ${held.reply.finish_reason}`}
            </p>
          </>
        )}
      </Shown>
    </details>
  );
}

function Text({ name, text, strong = false }: { name: string; text: string; strong?: boolean }) {
  return (
    <figure class={strong ? "text strong" : "text"}>
      <figcaption>{name}</figcaption>
      <pre tabIndex={0} aria-label={name}>{text}</pre>
    </figure>
  );
}
