/* Starts the page, and shows what the address says, whenever it changes. */
import "./styles/index.css";
import { comparePage } from "./compare/compare.js";
import { pairPage } from "./compare/pair.js";
import { casePage } from "./conversation/case.js";
import { failingNeighbours, readingPlace, returnTo } from "./conversation/reading_place.js";
import { embeddedIndex, fetchIndex, fetchRuns, forgetDetails } from "./data.js";
import { el, replace, tell } from "./dom.js";
import { startKeys } from "./page/keys.js";
import { follow } from "./live/live.js";
import { runsPage } from "./live/runs.js";
import { startPrinting } from "./page/print.js";
import { address, go, parseRoute, trialAddress } from "./route.js";
import { page } from "./state.js";
import { firstPage } from "./summary/summary.js";
import { startTheme } from "./page/theme.js";
import { showTop } from "./page/top.js";

let turn = 0; // renderings: only the newest may show itself

function filterOf(query) {
  const filter = {};
  for (const key of ["q", "deep", "status", "tag", "engine", "variant", "suite", "sort", "change", "against"]) {
    if (query.get(key)) filter[key] = query.get(key);
  }
  return filter;
}

async function load(route) {
  if (page.mode === "report") return null;
  if (!route.runId) {
    page.index = null;
    page.runId = null;
    const { runs } = await fetchRuns();
    if (page.route !== route) return null; // the reader has gone elsewhere meanwhile
    page.runs = runs;
    return runsPage(runs);
  }
  const against = page.filter.against || null;
  if (page.runId !== route.runId || page.against !== against || !page.index) {
    page.runId = route.runId;
    page.index = null;
    page.order = null;
    page.tableAddress = null;
    forgetDetails();
    page.against = against;
    const [runs, index] = await Promise.all([
      page.runs || fetchRuns().then((told) => told.runs),
      fetchIndex(route.runId),
    ]);
    if (page.route !== route) return null;
    Object.assign(page, { runs, index, toldAt: Date.now() });
  }
  return null;
}

function tablePage() {
  const { index } = page;
  page.tableAddress = address("");
  page.keys = [
    [
      "/",
      "filter",
      () => {
        const field = document.getElementById("filter-text");
        field.focus();
        field.select();
      },
    ],
    ["j ArrowDown", "next conversation", () => page.moveRow(1)],
    ["k ArrowUp", "previous conversation", () => page.moveRow(-1)],
    ["ArrowRight", "unfold a case's trials", () => page.foldRow(true)],
    ["ArrowLeft", "fold them", () => page.foldRow(false)],
    [
      "n",
      "first failing conversation",
      () => {
        const row = failingNeighbours(null).next;
        if (row) go(trialAddress(row.n));
        else tell("No failing conversation here");
      },
    ],
  ];
  if (page.mode === "view") page.back = () => go("#/");
  document.title = `${index.run.run_id} · skillup`;
  return firstPage(index);
}

/* `keep`: of a page that is drawn again: called right before that, gives what puts the reader back. */
export async function render({ keep = null } = {}) {
  const mine = ++turn;
  const main = document.getElementById("main");
  main.setAttribute("aria-busy", "true");
  const route = parseRoute(location.hash);
  const from = page.route;
  Object.assign(page, {
    route,
    filter: filterOf(route.query),
    shown: null,
    drawAll: null,
    showTrial: null,
    moveRow: () => {},
    foldRow: () => {},
  });
  // From one conversation to the next the keys go on while it is unpacked: n, n, n must be three steps.
  if (!(from && from.page === "trial" && route.page === "trial"))
    Object.assign(page, { keys: [], back: null });
  let content;
  try {
    content = await load(route);
    if (mine !== turn) return;
    if (!content) {
      if (route.page === "trial") content = await casePage(route.n, route.turn);
      else if (route.page === "compare") content = await comparePage(route.n, route.other, route.turn);
      else if (route.page === "pair") content = await pairPage(route.n, route.turn);
      else content = tablePage();
    }
  } catch (problem) {
    content = el(
      "div",
      { class: "case" },
      el("h1", {}, "This cannot be shown"),
      el("p", { class: "notice" }, problem.message),
    );
  }
  if (mine !== turn) return;
  const place = from && from.page === "trial" && route.page === "trial" ? readingPlace() : null;
  page.shownTrial = route.page === "trial" ? route.n : null;
  showTop();
  const putBack = keep && keep();
  replace(main, content);
  follow();
  if (putBack) {
    await null; // the table makes its rows in the moment after
    putBack();
  } else arrive(main, route, from, place);
  main.removeAttribute("aria-busy");
}

/* Where the reader is put: at the top, at the wanted turn, or at the row that was left. */
function arrive(main, route, from, place) {
  if (route.page === "table") {
    requestAnimationFrame(() => {
      if (route.query.get("go")) return lead(route.query.get("go"));
      if (page.focusFilter) document.getElementById("filter-text").focus();
      else if (from && /trial|compare/.test(from.page) && page.showTrial) page.showTrial(from.n, false);
      page.focusFilter = false;
    });
    if (!from) return;
    if (from.page === "table" && !route.query.get("go")) scrollTo(0, 0);
    return;
  }
  main.focus({ preventScroll: true });
  if (!page.shown && returnTo(place, route.n)) return;
  scrollTo(0, 0);
  if (page.shown) requestAnimationFrame(page.shown);
}

/* Where a link of the first page leads: the number of a trial, for its case unfolded, or the name of
   a part of the page. The address forgets it, so that the same link leads there again. */
function lead(wanted) {
  history.replaceState(null, "", address(""));
  if (/^\d+$/.test(wanted)) return page.showTrial && page.showTrial(Number(wanted), true);
  const part = document.getElementById(wanted);
  if (!part || !document.getElementById("main").contains(part)) return;
  part.scrollIntoView({ block: "start" });
  const first = wanted === "cases" ? part.querySelector("#rows a") : part.querySelector("h2");
  if (!first) return;
  if (first.tagName === "H2") first.tabIndex = -1;
  first.focus({ preventScroll: true });
}

function start() {
  const index = embeddedIndex();
  page.mode = index && index.run && index.mode !== "view" ? "report" : "view";
  page.index = page.mode === "report" ? index : null;
  if (index && index.open && !location.hash)
    history.replaceState(null, "", "#/run/" + encodeURIComponent(index.open) + "/");
  startTheme();
  startKeys();
  document.querySelector(".skip-link").addEventListener("click", (event) => {
    event.preventDefault(); // the address after # says what is shown; it is not the link's to change
    document.getElementById("main").focus();
    document.getElementById("main").scrollIntoView();
  });
  addEventListener("hashchange", () => render());
  render().then(startPrinting);
}

start();

/* For tests of the page, and for whoever looks into it with a browser's console. */
export { wordDifferences, turnDifferences } from "./compare/differences.js";
export { tool } from "./conversation/tool.js";
export { el } from "./dom.js";
export { duration, tokenText } from "./format.js";
export { page } from "./state.js";
export { diff } from "./text/diff.js";
export { markdown } from "./text/markdown.js";
export { calm } from "./text/text.js";
