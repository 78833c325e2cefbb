// All runs of the folder, and one run.
import type { Condition, Run } from "./data";
import { runs, served, useData, type Detail } from "./data";
import { bytes, Chip, clock, count, exact, Fact, money, Progress, share, Shown, Steering, when } from "./parts";
import { link, route } from "./route";

function Spent({ run }: { run: Run }) {
  const used = run.used;
  const priced = used.unpriced < used.answers || !used.answers;
  const spent = used.cost + (used.maybe_cost ?? 0);
  const budget = run.budget.usd;
  return (
    <>
      {used.answers ? (priced ? money(spent) : "price unknown") : "–"}
      {budget ? <span class="quiet"> of {money(budget)}</span> : null}
    </>
  );
}

export function RunsView() {
  const all = runs.value;
  if (all === null) return <p class="quiet" role="status">Looking for runs …</p>;
  if (!all.length) return <p class="quiet">There is no run in this folder yet. Begin one with llm-coop run.</p>;
  return (
    <>
      <h1>Runs</h1>
      <table class="cards">
        <caption class="hidden">Runs in this folder, the latest first</caption>
        <thead>
          <tr>
            {["Study", "State", "Progress", "Left", "Calls", "Tokens", "Cost", "Errors", "Repaired", "Fallbacks"].map((one) => (
              <th scope="col" class={one === "Study" || one === "State" || one === "Progress" ? "" : "number"}>{one}</th>
            ))}
            <th scope="col">{served && all.some((one) => Object.keys(one.live ?? {}).length) ? "Steer" : "Begun"}</th>
          </tr>
        </thead>
        <tbody>
          {all.map((run) =>
            run.problem ? (
              <tr key={run.run}>
                <th scope="row">{run.study || run.run}<span class="quiet under">{run.run}</span></th>
                <td data-name="State"><Chip state={run.state} /></td>
                <td colSpan={9} class="problem">{run.problem}</td>
              </tr>
            ) : (
              <tr key={run.run}>
                <th scope="row">
                  <a href={link(["run", run.run])}>{run.study}</a>
                  <span class="quiet under">{run.run}{run.models.length ? ` · ${run.models.join(", ")}` : ""}</span>
                </th>
                <td data-name="State"><Chip state={run.state} /></td>
                <td data-name="Progress">
                  <Progress run={run} />
                  <span class="quiet under number">{run.finished} of {run.total} episodes</span>
                </td>
                <td data-name="Left" class="number">{clock(run.left)}</td>
                <td data-name="Calls" class="number">{count(run.calls || null)}</td>
                <td data-name="Tokens" class="number">{count(run.used.prompt_tokens + run.used.completion_tokens || null)}</td>
                <td data-name="Cost" class="number"><Spent run={run} /></td>
                <td data-name="Errors" class="number">{run.calls ? share(run.errors, run.calls) : "–"}</td>
                <td data-name="Repaired" class="number">{share(run.rates.repaired, run.rates.asked)}</td>
                <td data-name="Fallbacks" class="number">{share(run.rates.fallbacks, run.rates.asked)}</td>
                <td>{Object.keys(run.live).length ? <Steering run={run} /> : <span class="quiet">{when(run.started)}</span>}</td>
              </tr>
            ),
          )}
        </tbody>
      </table>
    </>
  );
}

export function RunView({ name }: { name: string }) {
  const now = runs.value?.find((one) => one.run === name);
  const asked = useData<Detail>("run", { run: name }, `${now?.finished} ${now?.state}`);
  return (
    <Shown asked={asked}>
      {(held) => {
        const run = { ...held, ...now };
        return (
          <>
            <div class="heading">
              <h1>{run.study}</h1>
              <Chip state={run.state} />
              <Steering run={run} />
            </div>
            {run.description && <p class="about">{run.description}</p>}
            {held.branch && (
              <p>
                Branched from round {held.branch.at} on of{" "}
                {held.branch.run ? <a href={link(["run", held.branch.run])}>{held.branch.run}</a> : held.branch.of}.
              </p>
            )}
            {held.mixed.map((one) => <p class="problem">{one}</p>)}
            <dl class="facts">
              <Fact name="Episodes">
                {run.finished} of {run.total}
                <Progress run={run} />
              </Fact>
              <Fact name="Left">{clock(run.left)}</Fact>
              {run.models.length > 0 && (
                <>
                  <Fact name="Calls">{count(run.calls || null)}</Fact>
                  <Fact name="Tokens" note="questions and answers">
                    {count(run.used.prompt_tokens)} + {count(run.used.completion_tokens)}
                  </Fact>
                  <Fact name="Cost"><Spent run={run} /></Fact>
                  <Fact name="Errors" note="failed attempts, as a share of all">{share(run.errors, run.calls)}</Fact>
                  <Fact name="Repaired">{share(run.rates.repaired, run.rates.asked)}</Fact>
                  <Fact name="Fallbacks">{share(run.rates.fallbacks, run.rates.asked)}</Fact>
                </>
              )}
            </dl>
            <Workers run={run} parts={held.parts} />
            <h2>Conditions</h2>
            {held.found.map((one) => <ConditionPart run={run} condition={one} key={one.name} />)}
            <h2>Sessions</h2>
            <table class="cards">
              <caption class="hidden">Sessions that worked on this run</caption>
              <thead><tr><th scope="col">Begun</th><th scope="col">Ended</th><th scope="col">Part</th><th scope="col">Command</th></tr></thead>
              <tbody>
                {held.sessions.map((one) => (
                  <tr>
                    <td data-name="Begun">{when(one.started)}</td>
                    <td data-name="Ended">{when(one.ended)}</td>
                    <td data-name="Part">{one.part ?? "–"}</td>
                    <td data-name="Command" class="words rest"><code>{one.command || "–"}</code>{one.why && <span class="under">{one.why}</span>}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </>
        );
      }}
    </Shown>
  );
}

function Workers({ run, parts }: { run: Run; parts: Detail["parts"] }) {
  const lives = Object.entries(run.live);
  const elsewhere = parts.filter((one) => !(one.part in run.live));
  if (!lives.length && !elsewhere.length) return null;
  return (
    <>
      <h2>Workers</h2>
      <table class="cards">
        <caption class="hidden">Sessions that play this run now, and where</caption>
        <thead>
          <tr>
            {["Part", "Where", "Cores", "Memory", "Under way", "Waiting", "Limit", "Episodes now"].map((one) => <th scope="col">{one}</th>)}
          </tr>
        </thead>
        <tbody>
          {lives.flatMap(([part, live]) =>
            (live.devices ?? []).map((device, at) => (
              <tr key={part + at}>
                <th scope="row">{device.ray ? `Ray node ${device.ray}` : part}{device.alive === false && " (gone)"}</th>
                <td data-name="Where">{device.host}{device.pid ? ` · ${device.pid}` : ""}{device.slurm ? ` · SLURM ${device.slurm}` : ""}</td>
                <td data-name="Cores">{device.used !== undefined ? `${device.used} of ` : ""}{device.cores ?? "–"}{device.load !== undefined && <span class="quiet"> load {device.load.toFixed(1)}</span>}</td>
                <td data-name="Memory">{bytes(device.memory ?? device.most_memory)}</td>
                {at ? <td colSpan={4} /> : (
                  <>
                    <td data-name="Under way">{live.in_flight ?? "–"}</td>
                    <td data-name="Waiting">{live.waiting ?? "–"}</td>
                    <td data-name="Limit">{live.limit ?? live.most ?? "–"}</td>
                    <td data-name="Episodes now" class="words"><span class="tags">
                      {Object.entries(live.playing).slice(0, 12).map(([name, told]) => {
                        const cut = name.lastIndexOf("/");
                        return (
                          <a class="tag" href={link(["run", run.run, "episode", name.slice(0, cut), name.slice(cut + 1)])}>
                            {name}{told.share !== undefined && told.share !== null ? ` ${Math.round(100 * told.share)} %` : ""}
                          </a>
                        );
                      })}
                      {Object.keys(live.playing).length > 12 && ` and ${Object.keys(live.playing).length - 12} more`}
                      {live.why && <span class="quiet">paused: {live.why}</span>}
                    </span>
                    </td>
                  </>
                )}
              </tr>
            )),
          )}
          {elsewhere.map((one) => (
            <tr>
              <th scope="row">{one.part}</th>
              <td data-name="Where">{one.host} · {one.pid}</td>
              <td colSpan={6} class="quiet">writes its part of the journal; last sign of life {clock(one.age)} ago</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

const SHOWN = 200;

function ConditionPart({ run, condition }: { run: Run; condition: Condition }) {
  const first = Number(route.value.query[`from-${condition.name}`] ?? 0);
  const asked = useData<{ total: number; rows: { seed: number; state: string }[] }>(
    "episodes",
    { run: run.run, condition: condition.name, first, most: SHOWN },
    `${run.finished} ${Object.values(run.live).map((one) => Object.keys(one.playing)).join()}`,
  );
  return (
    <section class="condition">
      <h3>
        {condition.title} <span class="quiet">{condition.scenario}{condition.talk ? " · talk" : ""} · {condition.policies.join(", ")}</span>
      </h3>
      <dl class="facts small">
        {Object.entries(condition.headline).map(([name, one]) => (
          <Fact name={name.replaceAll("_", " ")} note={`${one.about} Mean of ${one.n} episodes.`}>{exact(one.mean)}</Fact>
        ))}
      </dl>
      <Shown asked={asked}>
        {(held) => (
          <p class="tags">
            {held.rows.map((one) =>
              one.state === "waiting" ? (
                <span class="tag waiting" key={one.seed}>{one.seed}</span>
              ) : (
                <a class={`tag ${one.state}`} key={one.seed} href={link(["run", run.run, "episode", condition.name, one.seed])}>
                  <span class="hidden">episode </span>{one.seed}{one.state === "playing" && " ▸"}
                </a>
              ),
            )}
            {first > 0 && <a href={link(route.value.path, { [`from-${condition.name}`]: first - SHOWN })}>earlier</a>}
            {first + SHOWN < held.total && (
              <a href={link(route.value.path, { [`from-${condition.name}`]: first + SHOWN })}>
                {held.total - first - SHOWN} more
              </a>
            )}
          </p>
        )}
      </Shown>
    </section>
  );
}
