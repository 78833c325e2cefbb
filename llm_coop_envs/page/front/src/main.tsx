import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { AgentsView, StoryView } from "./agents";
import { CompareView } from "./compare";
import { connected, listen, runs, served } from "./data";
import { EpisodeView } from "./episode";
import { link, route } from "./route";
import { RunsView, RunView } from "./runs";

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

const THEMES = ["system", "light", "dark"];

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
        {THEMES.map((one) => <option value={one}>{one}</option>)}
      </select>
    </label>
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
  return <RunsView />;
}

function Page() {
  const running = runs.value?.filter((one) => one.state === "running").length ?? 0;
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
        <a href={link(["compare"])}>Compare</a>
        <Theme />
      </header>
      <main id="content" tabIndex={-1}><View key={route.value.path.join("/")} /></main>
    </>
  );
}

listen();
render(<Page />, document.getElementById("page")!);
