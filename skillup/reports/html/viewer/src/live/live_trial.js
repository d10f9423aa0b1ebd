/* A conversation that is going on, or not begun, under `skillup view`: what is known so far; the page
   fills in as turns end, and is whole when the trial is over. */
import { rawLinks } from "../conversation/error.js";
import { speech } from "../conversation/turn.js";
import { detail as skDetail } from "../data.js";
import { announce, el } from "../dom.js";
import { render } from "../main.js";
import { address, go } from "../route.js";
import { page } from "../state.js";
import { status } from "../table/rows.js";
import { textBlock } from "../text/text.js";

/* Under the turns that are there: what is being done now. */
export const liveEnd = (detail) =>
  el(
    "section",
    { class: "live-end", "aria-label": "Under way" },
    (detail.under_way || []).map((turn) =>
      el(
        "div",
        { class: "turn under-way" },
        el(
          "header",
          { class: "turn-head" },
          el("h3", {}, "Turn " + turn.turn_number),
          " ",
          turn.status === "running" ? status("RUNNING") : el("span", { class: "aside" }, "over"),
          el("span", { class: "turn-facts" }, rawLinks(turn.raw)),
        ),
        turn.message
          ? speech("user", "User", "as the case has it", textBlock(turn.message))
          : null,
      ),
    ),
    el(
      "p",
      { class: "notice" },
      el("span", { class: "live" }, "running"),
      " ",
      detail.live,
      ". Turns show themselves here when they can be read; checks, when the trial is over.",
    ),
  );

export function waitingPage(row, detail) {
  page.back = () => go(page.tableAddress || address(""));
  return el(
    "article",
    { class: "case" },
    el("p", { class: "way" }, el("a", { href: page.tableAddress || address("") }, "← All conversations")),
    el("h1", {}, detail.case_id),
    el("p", { class: "verdict" }, status(row ? row.status : "NOT_HELD"), " ", detail.waiting),
    page.index.run.running
      ? el("p", { class: "notice" }, "The conversation shows itself here when it begins.")
      : null,
  );
}

/* [[turn, places of its folds that are open]]; a turn may have thousands of folds. */
const openFolds = () =>
  [...document.querySelectorAll("main .turn")].map((turn) => [
    turn.dataset.turn,
    foldsOf(turn).flatMap((fold, at) => (fold.open ? [at] : [])),
  ]);
const foldsOf = (turn) => (turn ? [...turn.querySelectorAll(".said details")] : []);
const turnOf = (number) => document.querySelector(`main .turn[data-turn="${Number(number)}"]`);

/* Draws the trial again if something of it is new; scroll and open calls stay. */
export async function refreshTrial(before) {
  const { route } = page;
  const now = await skDetail(route.n).catch(() => null);
  if (!now || page.route !== route || JSON.stringify(now) === before) return;
  await render({ keep: whereReaderIs });
  announce(now.live || now.waiting ? "A turn has ended" : "The conversation has ended");
}

function whereReaderIs() {
  const [left, top, kept] = [scrollX, scrollY, openFolds()];
  const focused = document.activeElement.closest(".turn");
  return () => {
    for (const [number, places] of kept) {
      let folds = foldsOf(turnOf(number));
      for (const at of places) {
        const fold = folds[at];
        if (!fold) continue;
        fold.buildInside();
        fold.open = true;
        if (fold.querySelector("details")) folds = foldsOf(turnOf(number)); // there are more by now
      }
    }
    const turn = focused && turnOf(focused.dataset.turn);
    if (turn) turn.focus({ preventScroll: true });
    scrollTo(left, top);
  };
}
