import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { AgentsView, StoryView } from "./agents";
import { CompareView } from "./compare";
import { connected, listen, runs, served } from "./data";
import { EpisodeView } from "./episode";
import { Notify } from "./notify";
import { Empty, useKeys } from "./parts";
import { link, route } from "./route";
import { RunView } from "./run";
import { RunsView } from "./runs";

function Trail() {
  const [kind, run, , condition, seed, more, number] = route.value.path;
  const parts: [string, string][] = [["Runs", link([])]];
  if (kind === "run" && run) parts.push([run, link(["run", run])]);
  if (condition && seed !== undefined) parts.push([`${condition} ${seed}`, link(["run", run, "episode", condition, seed])]);
  if (more === "agents") parts.push(["agents", link(["run", run, "episode", condition, seed, "agents"])]);
  if (more === "agent") parts.push([`agent ${number}`, location.hash]);
  if (kind === "compare") parts.push(["compare", location.hash]);
  useEffect(() => {
    document.title = [...parts].reverse().map(([name]) => name).join(" · ");
  });
  return (
    <nav aria-label="Where you are">
      <ol class="trail">
        {parts.map(([name, to], at) => (
          <li><a href={to} aria-current={at === parts.length - 1 ? "page" : undefined}>{name}</a></li>
        ))}
      </ol>
    </nav>
  );
}

const THEMES = [["system", "system"], ["light", "light"], ["dark", "dark"]];

function Theme() {
  const [theme, set] = useState(() => {
    try {
      return localStorage.getItem("theme") ?? "system";
    } catch {
      return "system"; // a file that is opened directly may not remember
    }
  });
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    window.dispatchEvent(new Event("themed"));
    try {
      localStorage.setItem("theme", theme);
    } catch {
      return;
    }
  }, [theme]);
  return (
    <label class="theme">
      <span class="hidden">Colours</span>
      <select value={theme} onChange={(event) => set(event.currentTarget.value)}>
        {THEMES.map(([one, name]) => <option value={one}>{name}</option>)}
      </select>
    </label>
  );
}

const KEYS: [string, string][] = [
  ["/", "search"],
  ["u", "one level up: from an episode to its run, from a run to all"],
  ["?", "show or hide this list"],
  ["← →", "the round before or after"],
  ["Shift ← →", "the moment before or after"],
  ["Home End", "the first or last round"],
  ["Space", "play the rounds"],
  ["[ ]", "follow the player before or after"],
  ["Esc", "follow nobody"],
];

// Keys that every view has, and the list of all.
function Keys({ open, set }: { open: boolean; set: (open: boolean) => void }) {
  useKeys((key) => {
    if (key === "?") set(!open);
    else if (key === "Escape" && open) set(false);
    else if (key === "/") {
      const field = document.querySelector<HTMLInputElement>("input[type=search]");
      if (!field) return false;
      field.focus();
    } else if (key === "u") {
      const [kind, run, , , seed, more] = route.value.path;
      location.hash = link(kind !== "run" || seed === undefined ? [] : more ? route.value.path.slice(0, 5) : [kind, run]);
    } else return false;
    return true;
  });
  if (!open) return null;
  return (
    <section class="keys" aria-label="Keys">
      <dl>{KEYS.map(([key, what]) => <div key={key}><dt>{key.split(" ").map((one) => <kbd key={one}>{one}</kbd>)}</dt><dd>{what}</dd></div>)}</dl>
    </section>
  );
}

function View() {
  const [kind, run, what, condition, seed, more, number] = route.value.path;
  if (kind === "compare") return <CompareView />;
  if (kind === "run" && run && what === "episode" && condition && Number.isInteger(Number(seed))) {
    const place = { run, condition, seed: Number(seed) };
    if (more === "agents") return <AgentsView {...place} />;
    if (more === "agent") return <StoryView {...place} number={Number(number)} />;
    return <EpisodeView {...place} />;
  }
  if (kind === "run" && run) return <RunView name={run} />;
  if (kind) return <><h1>No such page</h1><Empty title="There is nothing at this address"><p><a href={link([])}>All runs</a></p></Empty></>;
  return <RunsView />;
}

function Page() {
  const running = runs.value?.filter((one) => one.state === "running").length ?? 0;
  const [keys, showKeys] = useState(false);
  return (
    <>
      <a class="skip" href="#content" onClick={(event) => {
        event.preventDefault();
        document.getElementById("content")?.focus();
      }}>To the content</a>
      <header>
        <Trail />
        <span class={connected.value ? "quiet" : "problem"} role="status">
          {!connected.value ? "no connection to llm-coop view" : served ? (running ? `${running} running` : "") : "a copy; nothing here changes"}
        </span>
        <Notify />
        <a href={link(["compare"])}>Compare</a>
        <button class="plain" aria-expanded={keys} aria-label="Keys" title="Keys" onClick={() => showKeys(!keys)}><kbd>?</kbd></button>
        <Theme />
      </header>
      <Keys open={keys} set={showKeys} />
      <main id="content" tabIndex={-1}><View key={route.value.path.join("/")} /></main>
    </>
  );
}

listen();
render(<Page />, document.getElementById("page")!);
