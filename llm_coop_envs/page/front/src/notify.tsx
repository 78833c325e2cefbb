// A sentence on the desktop when a run ends, pauses, has used up its budget, or falls back more and more.
import { effect } from "@preact/signals";
import { useState } from "preact/hooks";
import { runs, served, type Run } from "./data";
import { money, share } from "./parts";
import { spent } from "./runs";

const INVALID_ABOVE = 0.05, ENOUGH = 20; // as llm-coop run warns
const RISEN = 1.5; // times what was told of last

interface Seen {
  state: string;
  isUsed: boolean;
  fallbacks: number; // the share that was last told of, or there was when this page began to look
}

function shareOf({ asked, fallbacks }: Run["rates"]): number {
  return asked >= ENOUGH ? fallbacks / asked : 0;
}

function isUsed(run: Run): boolean {
  const limits: [number, number | undefined][] = [
    [spent(run), run.budget.usd], [run.calls, run.budget.calls], [run.used.prompt_tokens + run.used.completion_tokens, run.budget.tokens],
  ];
  return limits.some(([amount, most]) => typeof most === "number" && amount >= 0.98 * most);
}

// What a person away from the screen wants to know of a change; nothing of most changes.
function sentences(run: Run, before: Seen): string[] {
  const state = run.state.split(" ")[0], far = `${run.finished} of ${run.total} episodes`;
  const told: string[] = [];
  if (state !== before.state) {
    if (state === "complete") told.push(`${run.run} is finished: ${run.total} episodes.`);
    else if (state === "paused") told.push(`${run.run} is paused: ${far}.`);
    else if (state === "interrupted") told.push(`${run.run} has stopped: ${far}.`);
  }
  if (isUsed(run) && !before.isUsed) told.push(`${run.run} has used up its budget${run.budget.usd ? ` of ${money(run.budget.usd)}` : ""}: ${far}.`);
  if (shareOf(run.rates) > Math.max(INVALID_ABOVE, RISEN * before.fallbacks)) {
    told.push(`${run.run}: fallbacks are at ${share(run.rates.fallbacks, run.rates.asked)} of ${run.rates.asked} decisions.`);
  }
  return told;
}

function follow(): () => void {
  const seen = new Map<string, Seen>();
  return effect(() => {
    for (const run of runs.value ?? []) {
      if (run.problem) continue;
      const before = seen.get(run.run), now = shareOf(run.rates);
      const told = before ? sentences(run, before) : [];
      const hasRisen = !before || now > Math.max(INVALID_ABOVE, RISEN * before.fallbacks);
      seen.set(run.run, { state: run.state.split(" ")[0], isUsed: isUsed(run), fallbacks: hasRisen ? now : before.fallbacks });
      for (const text of told) new Notification("llm-coop", { body: text, tag: text });
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
