// One run: its answers first, then its episodes, and who plays it.
import { useState } from "preact/hooks";
import { Answers } from "./answers";
import { keepNotes, runs, served, useData, type Detail, type Run, type Session } from "./data";
import { EpisodeTable } from "./episodes";
import { bytes, Chip, clock, count, Empty, Fact, Progress, share, Shown, Steering, useAgain, when } from "./parts";
import { link } from "./route";
import { Spent, Tags } from "./runs";

export function RunView({ name }: { name: string }) {
  const now = runs.value?.find((one) => one.run === name);
  const [again, look] = useState(0);
  const asked = useData<Detail>("run", { run: name }, `${now?.finished} ${now?.state} ${again}`);
  const unread = asked.data?.unread ?? 0;
  useAgain(unread, again, look);
  if (now?.problem) {
    return (
      <>
        <div class="heading"><h1>{now.study || name}</h1><Chip state={now.state} /></div>
        <p class="problem" role="alert">{now.problem}</p>
        <p><a href={link([])}>All runs</a></p>
      </>
    );
  }
  if (asked.error && !now) return <><h1>{name}</h1><Empty title={asked.error}><p><a href={link([])}>All runs</a></p></Empty></>;
  return <Shown asked={asked}>{(held) => <Read held={held} run={{ ...held, ...now }} />}</Shown>;
}

function Read({ held, run }: { held: Detail; run: Run }) {
  const ended = held.sessions.reduce<Session | undefined>((last, one) => (!last || one.started > last.started ? one : last), undefined);
  return (
    <>
      <div class="heading">
        <h1>{run.study}</h1>
        <Chip state={run.state} />
        <Steering run={run} />
        <span class="links">
          {held.report && <a class="button" href={held.report} target="_blank" rel="noopener">Report</a>}
          <a href={link(["compare"], { a: encodeURIComponent(run.run) })}>Compare</a>
        </span>
      </div>
      {run.description && <p class="about">{run.description}</p>}
      {held.branch && (
        <p>
          Branched from round {held.branch.at} on of{" "}
          {held.branch.run ? <a href={link(["run", held.branch.run])}>{held.branch.run}</a> : held.branch.of}.
        </p>
      )}
      {ended?.why && run.state === "interrupted" && <p class="caveat">{ended.why[0].toUpperCase() + ended.why.slice(1)}.</p>}
      {held.mixed.map((one) => <p class="problem">{one}</p>)}
      <Notes run={run} />
      <Answers held={held} run={run} />
      <Facts run={run} />
      <Workers run={run} held={held} />
      <EpisodeTable held={held} run={run} />
      <Sessions held={held} />
    </>
  );
}

function Facts({ run }: { run: Run }) {
  return (
    <dl class="facts">
      <Fact name="Episodes"><Progress run={run} /></Fact>
      {run.left !== null && <Fact name="Left">{clock(run.left)}</Fact>}
      <Fact name="Begun">{when(run.started)}</Fact>
      {run.models.length > 0 && (
        <>
          <Fact name="Calls">{count(run.calls || null)}</Fact>
          <Fact name="Tokens" note="questions and answers">{count(run.used.prompt_tokens)} + {count(run.used.completion_tokens)}</Fact>
          <Fact name="Cost"><Spent run={run} /></Fact>
          <Fact name="Errors" note="failed attempts, as a share of all">{share(run.errors, run.calls)}</Fact>
          <Fact name="Repaired">{share(run.rates.repaired, run.rates.asked)}</Fact>
          <Fact name="Fallbacks">{share(run.rates.fallbacks, run.rates.asked)}</Fact>
        </>
      )}
    </dl>
  );
}

// Tags and a note, which a person writes; they lie beside the run and change nothing in it.
function Notes({ run }: { run: Run }) {
  const [open, set] = useState(false);
  const [tags, setTags] = useState("");
  const [note, setNote] = useState("");
  const [problem, tell] = useState("");
  const begin = () => {
    setTags(run.tags.join(", "));
    setNote(run.note);
    tell("");
    set(true);
  };
  const keep = () => keepNotes(run.run, tags.split(","), note).then(
    (kept) => {
      runs.value = runs.value?.map((one) => (one.run === run.run ? { ...one, ...kept } : one)) ?? null;
      set(false);
    },
    (error) => tell(error.message),
  );
  if (open) {
    return (
      <form class="notes" aria-label="Tags and note" onSubmit={(event) => { event.preventDefault(); keep(); }}>
        <label>Tags <span class="quiet">separated by commas</span><input value={tags} onInput={(event) => setTags(event.currentTarget.value)} /></label>
        <label>Note<textarea rows={3} value={note} onInput={(event) => setNote(event.currentTarget.value)} /></label>
        <p><button>Keep</button> <button type="button" onClick={() => set(false)}>Cancel</button></p>
        {problem && <p class="problem" role="alert">{problem}</p>}
      </form>
    );
  }
  const written = run.tags.length || run.note;
  if (!served && !written) return null;
  return (
    <div class="notes">
      <Tags run={run} />
      {run.note && <p class="note">{run.note}</p>}
      {served && <button class="plain link" onClick={begin}>{written ? "Change tags and note" : "Add tags or a note"}</button>}
    </div>
  );
}

function Sessions({ held }: { held: Detail }) {
  return (
    <>
      <h2>Sessions</h2>
      <table class="cards rows">
        <caption class="hidden">Sessions that worked on this run</caption>
        <thead><tr><th scope="col">Begun</th><th scope="col">Ended</th><th scope="col">Part</th><th scope="col">Command</th></tr></thead>
        <tbody>
          {held.sessions.map((one) => (
            <tr>
              <td data-name="Begun">{when(one.started)}</td>
              <td data-name="Ended">{one.unended ? <>{one.unended.how}{one.unended.seen && <span class="quiet under">last seen {when(one.unended.seen)}</span>}</> : when(one.ended)}</td>
              <td data-name="Part">{one.part ?? "–"}</td>
              <td data-name="Command" class="words rest"><code>{one.command || "–"}</code>{one.why && <span class="under">{one.why}</span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function Workers({ run, held }: { run: Run; held: Detail }) {
  const lives = Object.entries(run.live);
  const elsewhere = held.parts.filter((one) => !(one.part in run.live));
  if (!lives.length && !elsewhere.length) return null;
  return (
    <>
      <h2>Workers</h2>
      <table class="cards rows">
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
                        const [condition, seed] = [name.slice(0, cut), name.slice(cut + 1)];
                        return (
                          <a class="tag" href={link(["run", run.run, "episode", condition, seed])}>
                            {held.found.find((arm) => arm.name === condition)?.title ?? condition} {seed}{told.share !== undefined && told.share !== null ? ` ${Math.round(100 * told.share)} %` : ""}
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
