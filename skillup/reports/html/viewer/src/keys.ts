/* The keyboard. Single keys act only outside fields and without modifiers; Tab, Enter and the browser's own
   keys are left alone. Each page has its own keys. */
import { jumpTo, toggleHelp, toggleTheme } from "./app";
import { announce, behaviour, byId, sync, tell, type Foldable } from "./dom";
import { print } from "./paper";
import { back, comparable, compareAddress, failingNeighbours, go, page, parseRoute, rowOf } from "./state";
import { trialAddress, trialsOf, wasHeld, type Key } from "./state";
import { foldRow, moveRow, order } from "./table";
import { toggleAsWritten } from "./text/text";
import { nextHit, searched } from "./trial";
import type { Row } from "../dist/types";

const COMMON: Key[] = [
  ["?", "show or hide these keys", () => toggleHelp()],
  ["t", "light or dark", () => toggleTheme()],
  ["Esc", "back", () => leave()],
];

/* By the address, which a key changes at once: the page hears of that a moment later. */
const here = () => parseRoute(location.hash);
const open = (row: Row | null | undefined, none: string) => (row ? go(trialAddress(row.n)) : tell(none));

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

const TABLE: Key[] = [
  ...LIST,
  ["ArrowRight", "unfold a case's trials", () => foldRow(true)],
  ["ArrowLeft", "fold them", () => foldRow(false)],
  [
    "n",
    "first failing conversation",
    () => open(failingNeighbours(order(), null).next, "No failing conversation here"),
  ],
];

const TURNS: Key[] = [
  ["j", "next turn", () => step(1)],
  ["k", "previous turn", () => step(-1)],
  ["e", "fold or unfold all tool calls", () => toggleAll()],
  ["w", "messages as they were written, or drawn", () => toggleAsWritten()],
];

const failing = () => failingNeighbours(order(), rowOf(here().n));

function nextTrial(by: number): Row | undefined {
  const row = rowOf(here().n);
  const all = row ? trialsOf(row) : [];
  return all[all.indexOf(row!) + by];
}

const TRIAL: Key[] = [
  ["n", "next failing case", () => open(failing().next, "No more failing cases")],
  ["p", "previous failing case", () => open(failing().previous, "No failing case before")],
  ["]", "next trial of this case", () => open(nextTrial(1), "This is its last trial")],
  ["[", "previous trial of this case", () => open(nextTrial(-1), "This is its first trial")],
  [
    "c",
    "compare with another trial of this case",
    () => {
      const [other] = comparable(here().n);
      if (other) go(compareAddress(here().n, other.n));
      else announce("This case has no other trial");
    },
  ],
  ...TURNS,
  [
    "/",
    "back to the filter",
    () => {
      page.focusFilter = true;
      go(back());
    },
  ],
];

const HITS: Key[] = [
  ["h", "next hit of the search", () => nextHit.go(1)],
  ["H", "previous hit", () => nextHit.go(-1)],
];

function otherTrial(by: number): void {
  const { n, other } = here();
  const row = rowOf(n);
  const others = row ? trialsOf(row).filter((one) => one.n !== n && wasHeld(one)) : [];
  const next = others[others.findIndex((one) => one.n === other) + by];
  if (next) go(compareAddress(n, next.n));
  else announce("There is no other trial");
}

const PAIR: Key[] = [["d", "next difference", () => nextDifference()], ...TURNS];
const COMPARE: Key[] = [
  ["]", "with the next trial", () => otherTrial(1)],
  ["[", "with the previous trial", () => otherTrial(-1)],
  ["x", "the other way round", () => go(compareAddress(here().other, here().n))],
  ...PAIR,
];

/* Those of the page that is shown. */
export function keys(): Key[] {
  const { page: kind } = page.route;
  const own = { table: page.index ? TABLE : LIST, trial: TRIAL, compare: COMPARE, pair: PAIR }[kind];
  return [...(kind === "trial" && searched().length ? HITS : []), ...own, ...COMMON];
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

/* All tool calls; what was looked at stays where it is. */
function toggleAll(): void {
  const article = document.querySelector("main > article");
  if (!article) return;
  const what = "details.tool, details.reasoning, details.changes";
  const all = [...article.querySelectorAll<Foldable & HTMLDetailsElement>(what)];
  const wanted = !all.every((one) => one.open);
  const focused = document.activeElement as HTMLElement | null;
  const parts = [...article.querySelectorAll(".turn-head, .who, details.tool")];
  const box = (one: Element) => one.getBoundingClientRect();
  const anchor = parts.find((one) => box(one).height && box(one).top >= 0);
  const top = anchor ? box(anchor).top : 0;
  // Where it is laid out, each of thousands would cost as much as all of them do at once.
  const place = document.createComment("");
  article.replaceWith(place);
  sync(() => all.forEach((one) => one.fold?.(wanted)));
  place.replaceWith(article);
  if (focused && article.contains(focused)) focused.focus({ preventScroll: true });
  const goBack = () => anchor && scrollBy({ top: box(anchor).top - top, behavior: "instant" });
  goBack();
  // How high thousands of calls are that are out of sight is told a moment later.
  if (article.querySelector(".many")) requestAnimationFrame(() => requestAnimationFrame(goBack));
  announce(wanted ? "All tool calls unfolded" : "All tool calls folded");
}

function nextDifference(): void {
  const rows = [...document.querySelectorAll(".pair-row.differing")];
  const next = rows.find((row) => row.getBoundingClientRect().top > 80) || rows[0];
  if (!next) return announce("There is no difference");
  next.querySelector<HTMLElement>(".turn")?.focus({ preventScroll: true });
  next.scrollIntoView({ block: "start", behavior: behaviour() });
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
