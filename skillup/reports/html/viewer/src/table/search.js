/* Searching the words of the conversations themselves: each is unpacked once, and its words kept. */
import { readDetail } from "../data.js";
import { page } from "../state.js";

const AT_ONCE = 6;
const MOST = 300000; // characters kept of one conversation
const SAID = new Set(["content", "text", "response", "arguments", "result", "system", "name", "diff"]);
const INSIDE = new Set(["turns", "items", "follow_ups", "history"]);
const texts = new Map();

const keyOf = (n) => (page.runId || "") + "/" + n;

/* What was said and done in a trial, in small letters; "" until it has been unpacked. */
export const conversationText = (n) => texts.get(keyOf(n)) || "";

function collect(value, words) {
  if (typeof value === "string") words.push(value);
  else if (Array.isArray(value)) for (const one of value) collect(one, words);
  else if (value && typeof value === "object")
    for (const one of Object.values(value)) collect(one, words);
}

function said(value, words) {
  for (const [key, inside] of Object.entries(value || {})) {
    if (SAID.has(key)) collect(inside, words);
    else if (INSIDE.has(key)) for (const one of inside || []) said(one, words);
    else if (key === "changes" && inside) said(inside, words);
  }
}

/* Unpacks what is not known yet; tells how far it is. False: the reader has gone elsewhere. */
let reading = Promise.resolve();
export function readConversations(rows, progress) {
  reading = reading.then(() => read(rows, progress)); // one after the other: each word typed asks
  return reading;
}

async function read(rows, progress) {
  const run = page.runId;
  const held = rows.filter((row) => !/^(NOT_HELD|NOT_NEEDED|RUNNING|WAITING)$/.test(row.status));
  const missing = held.filter((row) => !texts.has(keyOf(row.n)));
  let done = 0;
  async function worker() {
    while (missing.length && page.runId === run) {
      const { n } = missing.shift();
      const words = [];
      try {
        said(await readDetail(n), words);
      } catch {
        continue; // one that cannot be read has no words; the next search tries again
      }
      texts.set((run || "") + "/" + n, words.join("\n").slice(0, MOST).toLowerCase());
      done += 1;
      if (done % 20 === 0) progress(done, done + missing.length);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return page.runId === run;
}
