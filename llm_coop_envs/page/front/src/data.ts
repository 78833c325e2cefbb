// Where what is shown comes from: the server, or what a page that needs none holds.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";

export type Query = Record<string, string | number>;

export interface Live {
  held: boolean;
  most: number | null;
  devices: Device[];
  playing: Record<string, { events: number; share?: number }>;
  in_flight?: number;
  waiting?: number;
  limit?: number;
  why: string;
}
export interface Device {
  host: string;
  pid?: number;
  cores?: number;
  used?: number;
  load?: number;
  memory?: number;
  most_memory?: number;
  slurm?: string;
  ray?: string;
  alive?: boolean;
}
export interface Run {
  run: string;
  tags: string[];
  note: string;
  study?: string;
  description?: string;
  state: string;
  problem?: string;
  conditions: number;
  finished: number;
  total: number;
  started: string | null;
  ended: string | null;
  left: number | null;
  models: string[];
  used: Record<string, number>;
  errors: number;
  calls: number;
  rates: { asked: number; repaired: number; fallbacks: number };
  budget: { usd?: number; calls?: number; tokens?: number };
  live: Record<string, Live>;
  reading: Record<string, number>;
}
export interface Condition {
  name: string;
  title: string;
  scenario: string;
  talk: boolean;
  first_seed: number;
  finished: number;
  policies: string[];
  branch: { condition: string; arm?: string } | null;
  headline: Record<string, Measured>;
}
export interface Measured {
  mean: number;
  low: number | null;
  high: number | null;
  n: number;
  name: string;
  about: string;
  values: number[];
}
export interface EpisodeRow {
  condition: string;
  title: string;
  seed: number;
  state: string;
  share: number | null;
  problem: string;
  measures: Record<string, number>;
  asked: number | null;
  fallbacks: number | null;
  cost: number | null;
  tokens: number | null;
}
export interface Listing {
  total: number;
  first: number;
  rows: EpisodeRow[];
  unread?: number;
  reading?: string;
}
export interface Course {
  rounds: number[];
  places: number[];
  every: number;
  unit: string;
  series: { name: string; values: (number | null)[] }[];
  players: { name: string; values: (number | null)[] }[];
}
export interface Session {
  started: string;
  ended: string | null;
  unended: { how: string; seen: string | null } | null;
  command: string;
  workers: number | null;
  part: string | null;
  why: string;
}
export interface Detail extends Run {
  found: Condition[];
  branch: { at: number; run: string | null; of: string } | null;
  sessions: Session[];
  parts: { part: string; host: string; pid: number; age: number }[];
  mixed: string[];
  unread: number;
  report: string | null;
}
export interface Episode {
  run: string;
  condition: string;
  title: string;
  seed: number;
  scenario: string;
  kind: string;
  still: any;
  players: number;
  names: string[];
  rounds: number[];
  sees: boolean;
  moments: { round: number; text: string }[];
  policies: Record<string, number>;
  personas: Record<string, number>;
  options: Record<string, string> | null;
  talk: number;
  hearers: string;
  end: string | null;
  live: boolean;
  reading: number | null;
}
export interface Said {
  agent: number;
  text: string;
  hearers: number[] | null;
  step: number;
}
export interface Frame {
  place: number;
  round: number;
  doing: string;
  said: Said[];
  unsent: boolean;
  [other: string]: any;
}
export interface Agent {
  number: number;
  name: string;
  policy: string | null;
  persona: string | null;
  said: number;
  flags: number;
  choices: number[];
  calls_made: number;
  repairs: number;
  tokens: number;
  cost: number | null;
}
export interface Call {
  id: number;
  step: number;
  call: string;
  attempt: number;
  tokens: number;
  cost: number | null;
  model: string;
  failed: number;
}
export interface Story extends Omit<Agent, "said"> {
  said: (Said & { round: number; own: boolean })[];
  calls: Call[];
  live: boolean;
}

const held = document.getElementById("data");
const embedded: Record<string, any> | null = held ? JSON.parse(held.textContent ?? "null") : null;
export const served = embedded === null;

export const runs = signal<Run[] | null>(null);
export const connected = signal(true);
const reconnected = signal(0); // how often it was lost and found again

function key(name: string, query: Query): string {
  const names = Object.keys(query).sort();
  return [name, ...names.flatMap((one) => [one, String(query[one])])].join("\n");
}

export class Reading extends Error {}
class Unreachable extends Error {}

export async function ask<T>(name: string, query: Query): Promise<T> {
  if (embedded) return fromEmbedded(name, query) as T;
  const words = new URLSearchParams(Object.entries(query).map(([one, value]) => [one, String(value)]));
  let response: Response;
  try {
    response = await fetch(`api/${name}?${words}`);
  } catch {
    throw new Unreachable("the server does not answer; start it again with llm-coop view");
  }
  const found = await response.json();
  if (response.status === 202) throw new Reading(found.reading);
  if (!response.ok) throw new Error(found.error ?? response.statusText);
  return found;
}

function fromEmbedded(name: string, query: Query): unknown {
  const { first, most, ...place } = query;
  if (name === "frames") {
    const all: Frame[] = embedded![key("frames", place)] ?? [];
    return all.slice(Number(first), Number(first) + Number(most));
  }
  if (name === "agents") {
    const { run, condition, seed } = query;
    return filtered(embedded![key("agents", { run, condition, seed })] ?? [], query);
  }
  if (name === "episodes") return listed(embedded![key(name, { run: query.run })] ?? [], query);
  const found = embedded![key(name, query)];
  if (found === undefined) throw new Error("this page does not hold it; open the run with llm-coop view");
  return found;
}

// As the server filters, for a page that has none.
function filtered(all: (Agent & { texts: string })[], query: Query) {
  const text = (name: string) => String(query[name] ?? "").trim().toLowerCase();
  const kind = (held: string | null, wanted: string) =>
    !wanted || (wanted.startsWith("~") ? held?.toLowerCase().includes(wanted.slice(1)) : held?.toLowerCase() === wanted);
  const last = (one: Agent) => one.choices[one.choices.length - 1];
  let rows = all.filter(
    (one) =>
      one.name.toLowerCase().includes(text("name")) &&
      kind(one.policy, text("policy")) &&
      kind(one.persona, text("persona")) &&
      (!text("low") || last(one) >= Number(text("low"))) &&
      (!text("high") || last(one) <= Number(text("high"))) &&
      one.texts.toLowerCase().includes(text("said")),
  );
  const sort = String(query.sort ?? "number");
  const name = sort.replace("-", "");
  const value = (one: any) => (name === "last" ? last(one) : one[name]) ?? 0;
  rows = rows.toSorted((a, b) => (value(a) > value(b) ? 1 : value(a) < value(b) ? -1 : 0) * (sort.startsWith("-") ? -1 : 1));
  const first = Number(query.first ?? 0);
  return { total: rows.length, first, rows: rows.slice(first, first + Number(query.most ?? 50)) };
}

// As the server lists episodes, likewise.
function listed(all: EpisodeRow[], query: Query): Listing {
  const words = String(query.search ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const rows = all.filter(
    (one) =>
      (!query.condition || one.condition === query.condition) &&
      (!query.state || one.state === query.state) &&
      words.every((word) => `${one.condition} ${one.title} ${one.seed} ${one.state}`.toLowerCase().includes(word)),
  );
  const sort = String(query.sort ?? ""), column = sort.replace(/^-/, "");
  const value = (one: EpisodeRow): any => (one as any)[column] ?? one.measures[column];
  const sorted = sort ? ordered(rows, value, sort.startsWith("-")) : rows;
  const first = Number(query.first ?? 0);
  return { total: rows.length, first, rows: sorted.slice(first, first + Number(query.most ?? 50)) };
}

// Sorted; what has no value comes last either way.
export function ordered<T>(rows: T[], value: (row: T) => number | string | null | undefined, down: boolean): T[] {
  const missing = (one: T) => value(one) === null || value(one) === undefined;
  const present = rows.filter((one) => !missing(one));
  present.sort((a, b) => (value(a)! > value(b)! ? 1 : value(a)! < value(b)! ? -1 : 0) * (down ? -1 : 1));
  return [...present, ...rows.filter(missing)];
}

async function post(name: string, body: object): Promise<any> {
  const response = await fetch(`api/${name}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

export function order(run: string, what: string, most?: number): Promise<void> {
  return post("control", { run, do: what, most });
}

export function keepNotes(run: string, tags: string[], note: string): Promise<{ tags: string[]; note: string }> {
  return post("notes", { run, tags, note });
}

export interface Asked<T> {
  data?: T;
  error?: string;
  reading?: string;
}

// What was shown stays until what follows it is there, as long as it is of the same kind and place.
export function useData<T>(name: string | null, query: Query, changed: unknown = 0): Asked<T> {
  const wanted = name === null ? "" : key(name, query);
  const [found, set] = useState<Asked<T> & { of: string }>({ of: "" });
  useEffect(() => {
    if (name === null) return;
    let over = false;
    let timer = 0;
    const go = () =>
      ask<T>(name, query).then(
        (data) => over || set({ data, of: wanted }),
        (error) => {
          if (over) return;
          if (error instanceof Reading) {
            set({ reading: error.message, of: wanted });
            timer = window.setTimeout(go, 500);
          } else set((shown) => ({ data: shown.of === wanted && error instanceof Unreachable ? shown.data : undefined, error: String(error.message), of: wanted }));
        },
      );
    go();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [wanted, changed, reconnected.value]);
  return found.of === wanted ? found : {};
}

export function listen(): void {
  if (embedded) {
    runs.value = embedded["runs"];
    return;
  }
  const source = new EventSource("api/live");
  source.addEventListener("runs", (event) => {
    runs.value = JSON.parse((event as MessageEvent).data);
  });
  source.onerror = () => (connected.value = false);
  source.onopen = () => {
    if (!connected.value) reconnected.value++;
    connected.value = true;
  };
}
