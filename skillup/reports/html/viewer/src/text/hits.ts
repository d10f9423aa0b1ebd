/* Words that were searched for in conversations are marked in the one that is opened. The marks are
   the browser's own highlights over the text as it stands: nothing is written into it. */
import { useLayoutEffect } from "preact/hooks";
import { behaviour, unfoldAround, type Foldable } from "../dom";
import { page } from "../state";

const SAID = ".speech, .changes";
const BESIDE = "button, .who, .aside, .label, .tag, .kind, .tool-main, .visually-hidden";
const MOST = 5000; // each costs whenever the page changes

export const searched = () =>
  page.filter.deep
    ? [...new Set((page.filter.q || "").toLowerCase().split(/\s+/))]
        .filter((word) => word && !(word.length > 1 && word[0] === "-"))
        .sort((a, b) => b.length - a.length)
    : [];

/* All places of the words in what was said. */
function findHits(root: Element, words: string[]): Range[] {
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"));
  const pattern = new RegExp(escaped.join("|"), "giu");
  const found: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && found.length < MOST; node = walker.nextNode()) {
    const around = node.parentElement!;
    if (!around.closest(SAID) || around.closest(BESIDE)) continue;
    for (const match of (node as Text).data.matchAll(pattern)) {
      const range = document.createRange();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      found.push(range);
    }
  }
  return found;
}

/* Marks them as long as the conversation is shown, and leads to the first. */
export function useHits(): void {
  const words = searched();
  useLayoutEffect(() => {
    const root = document.querySelector("main .conversation");
    if (!root || !words.length || !("highlights" in CSS)) return;
    const paint = () => {
      const hits = findHits(root, words);
      CSS.highlights.set("sk-hit", new Highlight(...hits));
      return hits[0];
    };
    // Once the folds are there: those of what was said have their words, but stay folded.
    queueMicrotask(() => {
      const folds = root.querySelectorAll<Foldable>(".speech details, .changes");
      for (const one of folds) one.fold?.(null);
      const first = paint();
      if (!first || page.route.turn) return;
      unfoldAround(first.startContainer.parentElement!);
      const { top } = first.getBoundingClientRect();
      scrollTo({ top: scrollY + top - innerHeight / 3, behavior: behaviour() });
    });
    // A message that is drawn anew, as it was written, has its words elsewhere.
    const watch = new MutationObserver(paint);
    watch.observe(root, { childList: true, subtree: true });
    return () => {
      watch.disconnect();
      CSS.highlights.delete("sk-hit");
    };
  }, [words.join(" "), page.details[0]]);
}
