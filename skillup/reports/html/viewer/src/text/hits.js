/* Words that were searched for in conversations, in the one that is open: marked, and walked through.
   The marks are the browser's own highlights over the text as it stands: nothing is written into it. */
import { announce, button as skButton, el, replace, unfoldAround } from "../dom.js";
import { count, plural } from "../format.js";
import { calm } from "./text.js";

const SAID = ".speech, .changes";
const BESIDE = "button, .who, .aside, .label, .tag, .kind, .tool-main, .visually-hidden";
const BLOCK = ".text, summary, li, p, figcaption";
const MOST = 5000;

/* The words that must be there, longest first: of two that begin alike, the longer one is marked. */
const wanted = ({ q, deep }) =>
  deep
    ? [...new Set((q || "").toLowerCase().split(/\s+/))]
        .filter((word) => word && !(word.length > 1 && word[0] === "-"))
        .sort((a, b) => b.length - a.length)
    : [];

const anyOf = (words) =>
  new RegExp(words.map((word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("|"), "giu");

/* What is folded is built, so that there are words to be found in it; it stays folded. */
function build(root) {
  for (const part of root.querySelectorAll(SAID))
    for (const fold of [part, ...part.querySelectorAll("details")]) if (fold.buildInside) fold.buildInside();
}

/* The texts of a conversation, block by block: a word may go on from one text node to the next. */
function blocksOf(root) {
  const blocks = new Map();
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const around = node.parentElement;
    if (!around.closest(SAID) || around.closest(BESIDE)) continue;
    const block = around.closest(BLOCK) || around;
    if (!blocks.has(block)) blocks.set(block, []);
    blocks.get(block).push(node);
  }
  return blocks.values();
}

/* At most so many of them: each costs whenever the page changes. */
function rangesIn(nodes, pattern, most) {
  const starts = [];
  let text = "";
  for (const node of nodes) {
    starts.push(text.length);
    text += node.data;
  }
  const place = (at, last) => {
    let i = starts.length - 1;
    while (i > 0 && (last ? starts[i] >= at : starts[i] > at)) i--;
    return [nodes[i], at - starts[i]];
  };
  const found = [];
  for (const match of text.matchAll(pattern)) {
    if (found.length >= most) break;
    const range = document.createRange();
    range.setStart(...place(match.index, false));
    range.setEnd(...place(match.index + match[0].length, true));
    found.push(range);
  }
  return found;
}

function paint(all, now) {
  if (!CSS.highlights) return; // such a browser still leads from one to the next
  CSS.highlights.set("sk-hit", new Highlight(...all));
  CSS.highlights.set("sk-hit-now", new Highlight(...(now ? [now] : [])));
}

/* For an open conversation: {bar, keys, first: to the first of them}; null: nothing was searched for. */
export function hits(root, filter) {
  const words = wanted(filter);
  paint([], null);
  if (!words.length) return null;
  const pattern = anyOf(words);
  let found = [];
  let at = -1;
  function look() {
    build(root);
    found = [];
    for (const nodes of blocksOf(root)) found.push(...rangesIn(nodes, pattern, MOST - found.length));
    paint(found, found[at]);
  }
  look();
  const told = el("span", { class: "hits-told" });
  const say = () =>
    replace(
      told,
      at < 0
        ? `${plural(found.length, "hit")} of `
        : `hit ${count(at + 1)} of ${count(found.length)}: `,
      words.map((word, i) => [i ? ", " : null, el("q", {}, word)]),
    );
  function go(by) {
    if (!found.length) return announce("None of the words is in this conversation");
    at = at < 0 && by < 0 ? found.length - 1 : (at + by + found.length) % found.length;
    const node = found[at].startContainer.parentElement;
    unfoldAround(node);
    const turn = node.closest(".turn");
    if (turn) turn.focus({ preventScroll: true });
    const { top } = found[at].getBoundingClientRect();
    scrollTo({ top: scrollY + top - innerHeight / 3, behavior: calm() ? "auto" : "smooth" });
    paint(found, found[at]);
    say();
    announce(`hit ${at + 1} of ${found.length}`);
  }
  say();
  // A message that is drawn anew, as it was written, has its words elsewhere.
  new MutationObserver(() => {
    if (root.isConnected && found.some((one) => one.collapsed || !root.contains(one.startContainer))) look();
  }).observe(root, { childList: true, subtree: true });
  const button = (label, by, key) =>
    skButton(label, () => go(by), { class: "quiet", "aria-keyshortcuts": key, title: `Key ${key}` });
  return {
    bar: el(
      "div",
      { class: "hits", role: "group", "aria-label": "Words that were searched for" },
      told,
      found.length ? [button("↑ previous hit", -1, "H"), button("↓ next hit", 1, "h")] : null,
    ),
    keys: [
      ["h", "next hit of the search", () => go(1)],
      ["H", "previous hit", () => go(-1)],
    ],
    first: found.length ? () => go(1) : null,
  };
}
