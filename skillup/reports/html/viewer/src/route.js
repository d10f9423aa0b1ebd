/* The address says what is shown: a link reproduces the view.

     #/                                  the summary and the table (the list of runs, under view)
     #/?q=…&status=FAIL,ERROR&sort=-score  the same, filtered and sorted
     #/trial/12?…                        a conversation; the filter is kept for n, p and going back
     #/trial/12/turn/3                   the same, at turn 3; turn/end: at the checks of all of it
     #/trial/12/with/15                  beside another trial of the same case; …/turn/3 as above
     #/pair/7                            both conversations of a pair, of two runs; …/turn/3 as above
     #/run/ID/…                          any of these, in a run, under `skillup view` */
import { address as skAddress } from "./route.js";
import { page } from "./state.js";

export function parseRoute(hash) {
  const text = hash.replace(/^#\/?/, "");
  const cut = text.indexOf("?");
  const path = (cut < 0 ? text : text.slice(0, cut)).split("/").filter(Boolean).map(decode);
  const query = new URLSearchParams(cut < 0 ? "" : text.slice(cut + 1));
  const route = { runId: null, page: "table", n: null, turn: null, other: null, query };
  if (path[0] === "run" && path[1] !== undefined) route.runId = path.splice(0, 2)[1];
  if (path[0] === "trial" || path[0] === "pair") {
    route.page = path[0];
    route.n = whole(path[1]);
    if (path[0] === "trial" && path[2] === "with") {
      route.page = "compare";
      route.other = whole(path[3]);
      path.splice(2, 2);
    }
    if (path[2] === "turn") route.turn = path[3] === "end" ? "end" : whole(path[3]);
  }
  return route;
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function whole(text) {
  return /^\d{1,9}$/.test(text || "") ? Number(text) : null;
}

/* The address of a page with the filter that is in use; `changes` outrank it, null drops a key. */
export function address(path, changes) {
  const query = new URLSearchParams();
  const merged = { ...page.filter, ...changes };
  for (const [key, value] of Object.entries(merged)) if (value) query.set(key, value);
  const run = page.runId && page.mode === "view" ? "/run/" + encodeURIComponent(page.runId) : "";
  const text = query.toString().replace(/%2C/g, ",");
  return "#" + run + "/" + path + (text ? "?" + text : "");
}

export const trialAddress = (n, turn) => skAddress("trial/" + n + (turn ? "/turn/" + turn : ""));
export const compareAddress = (n, other, turn) =>
  skAddress(`trial/${n}/with/${other}` + (turn ? "/turn/" + turn : ""));
export function go(address) {
  location.hash = address;
}

/* Changes the filter without a new entry in the browser's history for every key stroke. */
export function setFilter(changes) {
  page.filter = { ...page.filter, ...changes };
  for (const key of Object.keys(page.filter)) if (!page.filter[key]) delete page.filter[key];
  history.replaceState(null, "", skAddress(""));
  page.tableAddress = location.hash;
}
