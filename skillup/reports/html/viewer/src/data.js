/* Where the data comes from. A report carries it: the index as JSON, each trial as gzip in base64,
   unpacked when it is looked at. Under `skillup view` the server gives it, by relative addresses. */
import { settle } from "./conversation/evidence.js";
import { page } from "./state.js";

const details = new Map(); // key → detail, so that going back and forth is instant
const KEEP = 60;

function embedded(id) {
  const node = document.getElementById(id);
  return node ? node.textContent : null;
}

async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

async function get(address) {
  const answer = await fetch(address, { cache: "no-store", headers: { Accept: "application/json" } });
  if (!answer.ok) {
    let message = answer.status + " " + answer.statusText;
    try {
      const told = await answer.json();
      message = [told.error, told.hint].filter(Boolean).join("; ") || message;
    } catch {
      /* no JSON: the status will do */
    }
    throw new Error(message);
  }
  return answer.json();
}

export function embeddedIndex() {
  const text = embedded("sk-index");
  return text === null ? null : JSON.parse(text);
}

export const runAddress = (runId) => "api/runs/" + encodeURIComponent(runId);
export const fetchRuns = () => get("api/runs");
export const fetchIndex = (runId) => get(runAddress(runId) + "/index.json" + beside());

/* The other run that is shown beside, if the address names one. */
function beside() {
  const against = page.filter.against;
  return against && page.mode === "view" ? "?against=" + encodeURIComponent(against) : "";
}

const keyOf = (n) => [page.runId || "", page.filter.against || "", n].join("/");

/* A trial's detail, from the page or from the server. */
export async function detail(n) {
  const key = keyOf(n);
  if (details.has(key)) return details.get(key);
  const detail = await readDetail(n);
  if (detail.turns) settle(detail);
  details.set(key, detail);
  if (details.size > KEEP) details.delete(details.keys().next().value);
  return detail;
}

/* The same, as it came and not kept. */
export async function readDetail(n) {
  const text = embedded("sk-trial-" + n);
  if (text !== null) return unpack(text);
  if (page.runId)
    return get(runAddress(page.runId) + "/trials/" + Number(n) + ".json" + beside());
  throw new Error("This report holds no conversation for this trial.");
}

/* The same, if it has been looked at before. */
export const detailAtHand = (n) => details.get(keyOf(n)) || null;
export const forgetDetails = () => details.clear();
