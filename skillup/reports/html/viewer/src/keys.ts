/* The keyboard. Single keys act only outside fields and without modifiers; Tab, Enter and the
   browser's own keys are left alone. Each page has its own keys. */
import { jumpTo, toggleHelp, toggleTheme, turnInView } from "./app";
import { announce, byId } from "./dom";
import { print } from "./paper";
import { back, comparable, compareAddress, failingNeighbours, go, page } from "./state";
import { parseRoute, rowOf, trialAddress, trialsOf, type Key } from "./state";
import { foldRow, moveRow, order } from "./table/table";
import type { Row } from "../dist/types";

const COMMON: Key[] = [
  ["?", "show or hide these keys", () => toggleHelp()],
  ["t", "light or dark", () => toggleTheme()],
  ["Esc", "back", () => leave()],
];

/* By the address, which a key changes at once: the page hears of that a moment later. */
const here = () => parseRoute(location.hash);
const open = (row: Row | null | undefined, none: string, turn: string | null = null) =>
  row ? go(trialAddress(row.n, turn)) : announce(none);

function toFilter(): void {
  const field = byId("filter-text") as HTMLInputElement | null;
  field?.focus();
  field?.select();
}

const LIST: Key[] = [
  ["/", "filter", toFilter],
  ["j ArrowDown", "next line", () => moveRow(1)],
  ["k ArrowUp", "previous line", () => moveRow(-1)],
];

const firstFailing = () => failingNeighbours(order(), null).next;
const TABLE: Key[] = [
  ...LIST,
  ["ArrowRight", "unfold a case's trials", () => foldRow(true)],
  ["ArrowLeft", "fold them", () => foldRow(false)],
  ["n", "first failing conversation", () => open(firstFailing(), "No failing conversation here")],
];

const TURNS: Key[] = [
  ["j", "next turn", () => step(1)],
  ["k", "previous turn", () => step(-1)],
];

const failing = () => failingNeighbours(order(), rowOf(here().n));

function nextTrial(by: number): Row | undefined {
  const row = rowOf(here().n);
  const all = row ? trialsOf(row) : [];
  return all[all.indexOf(row!) + by];
}

function compare(): void {
  const [other] = comparable(here().n);
  if (other) go(compareAddress(here().n, other.n));
  else announce("This case has no other trial");
}

const TRIAL: Key[] = [
  ["n", "next failing case", () => open(failing().next, "No more failing cases")],
  ["p", "previous failing case", () => open(failing().previous, "No failing case before")],
  [
    "]",
    "next trial of this case",
    () => open(nextTrial(1), "This is its last trial", turnInView()),
  ],
  ["[", "previous trial", () => open(nextTrial(-1), "This is its first trial", turnInView())],
  ["c", "compare with another trial of this case", compare],
  ...TURNS,
];

/* Those of the page that is shown. */
export function keys(): Key[] {
  const { page: kind } = page.route;
  const own = { table: page.index ? TABLE : LIST, trial: TRIAL, compare: TURNS, pair: TURNS };
  return [...own[kind], ...COMMON];
}

function leave(): void {
  const { page: kind, n } = page.route;
  if (kind === "compare") go(trialAddress(n));
  else if (kind !== "table") go(back());
  else if (page.mode === "view" && page.index) go("#/");
}

function step(by: number): void {
  const turns = [...document.querySelectorAll<HTMLElement>("main .turn[data-turn]")];
  let at = turns.findIndex((turn) => turn.contains(document.activeElement));
  if (at < 0) at = by > 0 ? -1 : turns.length;
  const turn = turns[Math.max(0, Math.min(turns.length - 1, at + by))];
  if (turn) jumpTo(turn.dataset.turn!);
}

const inField = (target: EventTarget | null) =>
  target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);

export function startKeys(): void {
  document.addEventListener("keydown", (event) => {
    const { key } = event;
    const target = event.target as HTMLElement;
    if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "p" && !event.shiftKey) {
      event.preventDefault();
      return void print();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (page.help) {
      if (key === "?") toggleHelp();
      return; // the dialog closes itself by Escape
    }
    if (key === "Escape") return inField(target) ? target.blur() : leave();
    if (inField(target) && !(target.id === "filter-text" && key === "ArrowDown")) return;
    // Arrows scroll, as everywhere, unless the reader is in the table already.
    if (key.startsWith("Arrow") && !inField(target) && !target.closest("#rows")) return;
    const action = keys().find(([names]) => names.split(" ").includes(key));
    if (!action) return;
    event.preventDefault();
    action[2]();
  });
}
