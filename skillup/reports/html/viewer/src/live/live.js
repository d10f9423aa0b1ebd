/* A run that is going on, under `skillup view`: the server says when its journal grew; the page asks
   for the index again and shows it in place, so that scroll, filter and focus stay. */
import { detailAtHand, fetchIndex, forgetDetails, runAddress } from "../data.js";
import { known } from "../format.js";
import { refreshTrial } from "./live_trial.js";
import { render } from "../main.js";
import { page } from "../state.js";
import { showTop } from "../page/top.js";

let source = null;
let following = null;
let waiting = null; // a question that is about to be asked, or is being answered
let again = false; // something changed since it was asked
let took = 0; // milliseconds, the last one

/* Follow the run that is shown, or the list of runs; stop following any other. */
export function follow() {
  const wanted = wantedEvents();
  if (wanted === following || document.hidden) return;
  if (source) source.close();
  source = null;
  following = wanted;
  if (!wanted || !window.EventSource) return;
  source = new EventSource(wanted);
  source.addEventListener("changed", askSoon);
  // When the stream begins, too: of what changed since the index was asked for, it says nothing.
  let justAsked = !page.index; // the list; a run may have ended meanwhile, and then says no more
  source.addEventListener("open", () => {
    if (!justAsked) askSoon();
    justAsked = false;
  });
}

/* Several changes, one question; and of a large run, which takes long to tell, fewer. */
function askSoon() {
  again = true;
  if (waiting === null) waiting = setTimeout(ask, Math.max(250, 2 * took));
}

async function ask() {
  again = false;
  const began = performance.now();
  try {
    await refresh();
  } finally {
    took = performance.now() - began;
    waiting = null;
  }
  if (again && !document.hidden) askSoon();
}

/* A browser keeps six connections to a server for all its tabs: those that nobody sees let go. */
document.addEventListener("visibilitychange", () => {
  if (page.mode !== "view") return;
  if (!document.hidden) return askSoon();
  if (source) source.close();
  source = following = null;
});

function wantedEvents() {
  if (page.mode !== "view") return null;
  if (!page.index) return page.runId ? null : "api/events";
  return page.index.run.finished ? null : runAddress(page.runId) + "/events";
}

async function refresh() {
  const { runId, route, against } = page;
  let index = null;
  try {
    if (runId) index = await fetchIndex(runId);
  } catch {
    return;
  } // the next event asks again
  if (page.runId !== runId || page.against !== against) return;
  // What is shown of a trial that has no grade yet, or could not be read, may have changed with it.
  const shown = route.page === "trial" ? detailAtHand(route.n) : null;
  const before = route.page === "trial" && !(shown && shown.grade) ? JSON.stringify(shown) : null;
  if (runId) {
    Object.assign(page, { index, toldAt: Date.now() });
    forgetDetails();
    showTop();
  }
  if (page.route === route && route.page === "table") await redraw();
  if (page.route === route && before) await refreshTrial(before);
  follow();
}

const foldName = (fold) => (fold.closest("section[id]") || {}).id + "/" + fold.className;
const openFolds = () => new Set([...document.querySelectorAll("main details[open]")].map(foldName));

/* Draws the page that is shown again, keeping where the reader is. */
export const redraw = () => render({ keep: whereReaderIs });

/* What is open, has the focus and is in the window; gives what brings all that back. */
function whereReaderIs() {
  const [left, top] = [scrollX, scrollY];
  const active = document.activeElement || document.body;
  const open = openFolds();
  const focusAgain = active.id ? fieldAgain(active) : linkAgain(active);
  return () => {
    for (const fold of document.querySelectorAll("main details")) {
      if (!open.has(foldName(fold))) continue;
      fold.buildInside();
      fold.open = true;
    }
    focusAgain();
    if (top > 0 && page.drawAll && document.documentElement.scrollHeight < top + innerHeight)
      page.drawAll();
    scrollTo(left, top);
  };
}

function fieldAgain({ id, value, selectionStart, selectionEnd }) {
  return () => {
    const node = document.getElementById(id);
    if (!node) return;
    node.focus({ preventScroll: true });
    if (!node.setSelectionRange || !known(selectionStart)) return;
    if (node.value === value.trim()) node.value = value; // a space after a word, before the next
    node.setSelectionRange(selectionStart, selectionEnd);
  };
}

function linkAgain(active) {
  const row = active.closest("tr[data-n], tr[data-run]");
  if (!row) return () => {};
  const { n, run } = row.dataset;
  const link = run ? `tr[data-run="${CSS.escape(run)}"] a` : `tr[data-n="${Number(n)}"] a`;
  return () => {
    if (!run && page.drawAll && !document.querySelector(link)) page.drawAll();
    const node = document.querySelector(link);
    if (node) node.focus({ preventScroll: true });
  };
}
