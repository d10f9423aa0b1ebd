/* What is not the same in two conversations: their messages, calls and answers, turn by turn; and
   which words of two answers differ. */
import { markOfTurn } from "../conversation/turn.js";

const MOST_CELLS = 4e6; // of the table below: some 2,000 words against 2,000
/* Where a trial worked, as skillup/store/scratch.py names it: another place for each is no difference. */
const PLACE = /(?:\/[^\s"'/:\\]+)*[/-]skillup-[a-z0-9_-]{8}[/-][0-9a-f]{12}(?![0-9a-f])/u;
const PLACES = new RegExp(PLACE.source, "gu");
const TOKEN = new RegExp(PLACE.source + String.raw`|\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]`, "gu");

const anywhere = (text) => text.replace(PLACES, "");

const tokensOf = (text) =>
  [...text.matchAll(TOKEN)].map((match) => ({
    text: /^\s/.test(match[0]) ? " " : anywhere(match[0]),
    start: match.index,
    end: match.index + match[0].length,
  }));

/* Places of words that only one of the two has: [in a, in b], each [{start, end}]. Where the texts
   are too long to be compared, all between their common beginning and end. */
export function wordDifferences(a, b) {
  const [left, right] = [tokensOf(a), tokensOf(b)];
  let from = 0;
  while (from < left.length && from < right.length && left[from].text === right[from].text) from++;
  let [endA, endB] = [left.length, right.length];
  while (endA > from && endB > from && left[endA - 1].text === right[endB - 1].text) {
    endA--;
    endB--;
  }
  const [keptA, keptB] = common(left.slice(from, endA), right.slice(from, endB));
  return [places(left, from, endA, keptA), places(right, from, endB, keptB)];
}

/* The longest words in common, in order: [kept of a, kept of b] as sets of indices. */
function common(a, b) {
  const [kept, keptB] = [new Set(), new Set()];
  const width = b.length + 1;
  if (!a.length || !b.length || (a.length + 1) * width > MOST_CELLS) return [kept, keptB];
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      longest[i * width + j] =
        a[i].text === b[j].text
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i].text === b[j].text) {
      kept.add(i++);
      keptB.add(j++);
    } else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i++;
    else j++;
  }
  return [kept, keptB];
}

/* Neighbouring words are one place; a space alone is none. */
function places(tokens, from, to, kept) {
  const found = [];
  for (let at = from; at < to; at++) {
    const token = tokens[at];
    const last = found[found.length - 1];
    const space = token.text === " ";
    if (space ? !(last && last.next === at) : kept.has(at - from)) continue;
    if (last && last.next === at) {
      if (!space) last.end = token.end;
      last.next = at + 1;
    } else if (!space) found.push({ start: token.start, end: token.end, next: at + 1 });
  }
  return found.map(({ start, end }) => ({ start, end, class: "differs", title: "only on this side" }));
}

const callsOf = (turn) => (turn.items || []).filter((item) => item.type === "tool");
const callText = (item) => item.name + " " + anywhere(JSON.stringify(item.arguments || {}));

/* The place of the first call, among a turn's, that the other has not there; null: all are alike. */
export function firstOtherCall(a, b) {
  const [left, right] = [callsOf(a).map(callText), callsOf(b).map(callText)];
  for (let at = 0; at < Math.max(left.length, right.length); at++) if (left[at] !== right[at]) return at;
  return null;
}

/* What differs in two turns, in words; empty: nothing that tells them apart. */
export function turnDifferences(a, b) {
  if (!a || !b) return ["only on one side"];
  const end = (turn) => markOfTurn(turn).status;
  return [
    anywhere(a.content) !== anywhere(b.content) ? "message" : null,
    firstOtherCall(a, b) !== null ? "tool calls" : null,
    anywhere(a.response || "").trim() !== anywhere(b.response || "").trim() ? "answer" : null,
    end(a) !== end(b) ? "verdict" : null,
  ].filter(Boolean);
}

/* Of two conversations: {turns: [[what differs in turn 1], …], words: [Map, Map] of turn → places}. */
export function differences(a, b) {
  const words = [new Map(), new Map()];
  const count = Math.max(a ? a.turns.length : 0, b ? b.turns.length : 0);
  const turns = [];
  for (let at = 0; at < count; at++) {
    const [left, right] = [a && a.turns[at], b && b.turns[at]];
    turns.push(a && b ? turnDifferences(left, right) : []);
    if (!left || !right || left.response === right.response) continue;
    const [inA, inB] = wordDifferences(left.response || "", right.response || "");
    words[0].set(left.turn_number, inA);
    words[1].set(right.turn_number, inB);
  }
  return { turns, words };
}
