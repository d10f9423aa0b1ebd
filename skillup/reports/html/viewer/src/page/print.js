/* On paper: the summary, the table, and the conversations that failed, with everything unfolded.
   Of trials of a case that failed for the same reason, one. Of a single conversation, that one. */
import { conversation } from "../conversation/case.js";
import { caseHead } from "../conversation/case_head.js";
import { detail as skDetail } from "../data.js";
import { announce, el } from "../dom.js";
import { plural } from "../format.js";
import { page } from "../state.js";
import { isBaseline } from "../summary/summary.js";
import { caseKey, shownRows } from "../table/groups.js";

const MOST = 100;
const AT_HAND = 25;
const unpacked = new Map(); // n → its conversation, or null if it cannot be read

/* One trial of each case and reason; `like`: the other trials that failed for it. */
function failing() {
  const found = new Map();
  const rows = page.index
    ? shownRows(page.index.rows, { ...page.filter, status: null })
    : [];
  for (const row of rows) {
    if (row.status !== "ERROR" && (row.status !== "FAIL" || isBaseline(row))) continue;
    const key = caseKey(row) + "\u0000" + row.status + row.reason;
    if (found.has(key)) found.get(key).like.push(row);
    else found.set(key, { row, like: [] });
  }
  return [...found.values()];
}

async function unpack(n) {
  unpacked.set(n, await skDetail(n).catch(() => null));
}

/* Unpacks what has to be printed, then opens the browser's dialog. */
export async function print() {
  if (page.index && page.route.page === "table") {
    announce("Preparing the conversations that failed");
    await Promise.all(failing().slice(0, MOST).map(({ row }) => unpack(row.n)));
  }
  window.print();
}

export function startPrinting() {
  addEventListener("beforeprint", prepare);
  addEventListener("afterprint", () => {
    const annex = document.getElementById("annex");
    if (annex) annex.remove();
    if (page.mode === "view") unpacked.clear(); // a run that goes on has others next time
    for (const fold of document.querySelectorAll("details[data-printed]")) {
      fold.open = false;
      delete fold.dataset.printed;
    }
  });
  // The browser's own menu does not wait for us: have the first ones at hand.
  if (page.mode === "report") {
    const later = window.requestIdleCallback || ((work) => setTimeout(work, 500));
    later(async () => {
      for (const { row } of failing().slice(0, AT_HAND)) await unpack(row.n);
    });
  }
}

/* What of the conversations that failed is not on the paper, and how it gets there. */
function missing(unprepared, beyond) {
  const said = [
    unprepared
      ? `${plural(unprepared, "conversation")} that failed ${unprepared === 1 ? "is" : "are"} not printed here, ` +
        `because the browser's own menu does not wait for them: print with the page's Print button, or Ctrl-P.`
      : null,
    beyond
      ? `${plural(beyond, "conversation")} that failed ${beyond === 1 ? "is" : "are"} not printed, beyond the ` +
        `first ${MOST}: filter the table to print others.`
      : null,
  ].filter(Boolean);
  return said.length ? el("p", { class: "notice", id: "not-printed" }, said.join(" ")) : null;
}

function prepare() {
  if (document.getElementById("annex")) return;
  if (page.index && page.route.page === "table") {
    if (page.drawAll) page.drawAll();
    const all = failing();
    const wanted = all.slice(0, MOST);
    const unprepared = wanted.filter(({ row }) => !unpacked.has(row.n)).length;
    const annex = el("section", { id: "annex" }, missing(unprepared, all.length - wanted.length));
    for (const { row, like } of wanted) {
      const detail = unpacked.get(row.n);
      if (detail && detail.turns)
        annex.append(
          el(
            "article",
            { class: "case" },
            caseHead(detail, row),
            like.length
              ? el(
                  "p",
                  { class: "note like" },
                  `This is trial ${row.trial}. For the same reason failed: ` +
                    like.map((one) => "trial " + one.trial).join(", ") +
                    ".",
                )
              : null,
            conversation(detail),
          ),
        );
    }
    document.getElementById("main").append(annex);
  }
  // A check that was met says on paper no more than that.
  const folded = ".matrix, .chart-table, .reasoning, .check-PASS";
  for (const fold of document.querySelectorAll(`main details:not(${folded})`)) {
    if (fold.open || fold.closest(".check-PASS")) continue;
    if (fold.buildInside) fold.buildInside();
    fold.open = true;
    fold.dataset.printed = "";
  }
}
