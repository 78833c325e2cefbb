// The address names what is shown: everything behind # is read here, and nothing else remembers where we are.
import { signal } from "@preact/signals";

export interface Route {
  path: string[];
  query: Record<string, string>;
}

function read(): Route {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean);
  try {
    return { path: parts.map(decodeURIComponent), query: Object.fromEntries(new URLSearchParams(query)) };
  } catch {
    return { path: [], query: {} };
  }
}

export const route = signal<Route>(read());
window.addEventListener("hashchange", () => (route.value = read()));

export function link(path: (string | number)[], query: Record<string, string | number> = {}): string {
  const words = new URLSearchParams(
    Object.entries(query)
      .filter(([, value]) => value !== "")
      .map(([name, value]) => [name, String(value)]),
  ).toString();
  return `#/${path.map((one) => encodeURIComponent(one)).join("/")}${words ? `?${words}` : ""}`;
}

// What changes often, such as the round, replaces the address, so that "back" leads out of the view.
export function go(query: Record<string, string | number>, push = false): void {
  const next = link(route.value.path, { ...route.value.query, ...query });
  if (next === location.hash) return;
  if (push) location.hash = next;
  else {
    history.replaceState(null, "", next);
    route.value = read();
  }
}
