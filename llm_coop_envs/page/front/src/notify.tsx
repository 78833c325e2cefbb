// A sentence on the desktop when a run ends, pauses, has used up its budget, or falls back more and more.
import { effect } from "@preact/signals";
import { useState } from "preact/hooks";
import { runs, served, type Run } from "./data";
import { money, share } from "./parts";
import { spent } from "./runs";

const INVALID_ABOVE = 0.05, ENOUGH = 20; // as llm-coop run warns

interface Seen {
  state: string;
  used: boolean;
  fallbacks: number;
}

function look(run: Run): Seen {
  const { asked, fallbacks } = run.rates;
  const used = [[spent(run), run.budget.usd], [run.calls, run.budget.calls], [run.used.prompt_tokens + run.used.completion_tokens, run.budget.tokens]]
    .some(([amount, most]) => most !== undefined && most !== null && amount! >= 0.98 * most);
  return { state: run.state.split(" ")[0], used, fallbacks: asked >= ENOUGH ? fallbacks / asked : 0 };
}

// What a person away from the screen wants to know of a change; nothing of most changes.
export function sentences(run: Run, before: Seen, now: Seen): string[] {
  const told: string[] = [];
  const far = `${run.finished} of ${run.total} episodes`;
  if (now.state !== before.state) {
    if (now.state === "complete") told.push(`${run.run} is finished: ${run.total} episodes.`);
    else if (now.state === "paused") told.push(`${run.run} is paused: ${far}.`);
    else if (now.state === "interrupted") told.push(`${run.run} has stopped: ${far}.`);
  }
  if (now.used && !before.used) told.push(`${run.run} has used up its budget${run.budget.usd ? ` of ${money(run.budget.usd)}` : ""}: ${far}.`);
  if (now.fallbacks > INVALID_ABOVE && now.fallbacks >= 1.5 * Math.max(before.fallbacks, INVALID_ABOVE / 1.5)) {
    told.push(`${run.run}: fallbacks are at ${share(run.rates.fallbacks, run.rates.asked)} of ${run.rates.asked} decisions.`);
  }
  return told;
}

function follow(): () => void {
  const seen = new Map<string, Seen>();
  return effect(() => {
    for (const run of runs.value ?? []) {
      if (run.problem) continue;
      const now = look(run), before = seen.get(run.run);
      // Shares are remembered as they were told, so that a slow rise is told, too.
      const told = before ? sentences(run, before, now) : [];
      const kept = before && now.fallbacks < 1.5 * Math.max(before.fallbacks, INVALID_ABOVE / 1.5) ? { ...now, fallbacks: before.fallbacks } : now;
      seen.set(run.run, kept);
      for (const text of told) new Notification("llm-coop", { body: text, tag: `${run.run} ${text}` });
    }
  });
}

let following: (() => void) | null = null;

export function Notify() {
  const [on, set] = useState(false);
  const [problem, tell] = useState("");
  if (!served || !("Notification" in window)) return null;
  const toggle = async () => {
    if (on) {
      following?.();
      following = null;
      return set(false);
    }
    if ((await Notification.requestPermission()) !== "granted") return tell("The browser does not allow notifications for this page.");
    tell("");
    following = follow();
    set(true);
  };
  return (
    <>
      {problem && <span class="problem" role="alert">{problem}</span>}
      <button class="plain link" aria-pressed={on} title="A sentence on the desktop when a run ends, pauses, has used up its budget, or falls back more and more; while this page is open" onClick={toggle}>
        {on ? "Notifying" : "Notify me"}
      </button>
    </>
  );
}
