/* A text as it was written, with places in it marked: evidence of checks, captures, and the few
   signs of Markdown that help reading. The text itself is never changed: ranges are offsets in it. */
import { folded as skFolded } from "./text.js";
import { button as skButton, el, say, unfoldAround } from "../dom.js";
import { count } from "../format.js";

const FOLD_CHARACTERS = 1800;
const FOLD_LINES = 28;

/* Where Markdown's own signs are: fenced and inline code, headings, bold. [{start, end, class}]. */
export function markdownRanges(text) {
  if (text.length > 20000) return []; // of longer ones each sign would take its time
  const found = [];
  const taken = [];
  const free = (start, end) => !taken.some((one) => start < one[1] && end > one[0]);
  function look(pattern, name, blocks) {
    for (const match of text.matchAll(pattern)) {
      const [start, end] = [match.index, match.index + match[0].length];
      if (start === end || !free(start, end)) continue;
      found.push({ start, end, class: name });
      if (blocks) taken.push([start, end]);
    }
  }
  look(/^(```|~~~)[^\n]*\n[\s\S]*?^\1[ \t]*$/gm, "md-block", true);
  look(/`[^`\n]+`/g, "md-code", true);
  look(/^#{1,6} [^\n]+$/gm, "md-heading", false);
  look(/\*\*[^*\n]+\*\*/g, "md-bold", false);
  return found;
}

/* Fills `node` with `text`; `ranges`: [{start, end, class, title, marks: [key]}] may overlap. Pieces with
   keys are <mark data-marks="key key">, which showMark finds. */
export function fillMarked(node, text, ranges) {
  const good = ranges.filter((one) => one.start < one.end && one.start >= 0 && one.end <= text.length);
  const cuts = [...new Set([0, text.length, ...good.flatMap((one) => [one.start, one.end])])].sort(
    (a, b) => a - b,
  );
  const sorted = [...good].sort((a, b) => a.start - b.start);
  let open = [];
  let next = 0;
  for (let at = 0; at + 1 < cuts.length; at++) {
    const [start, end] = [cuts[at], cuts[at + 1]];
    open = open.filter((one) => one.end > start);
    while (next < sorted.length && sorted[next].start <= start) open.push(sorted[next++]);
    const piece = text.slice(start, end);
    if (!open.length) {
      say(node, piece);
      continue;
    }
    const marks = open.flatMap((one) => one.marks || []);
    node.appendChild(
      el(marks.length ? "mark" : "span", {
        class: [...new Set(open.map((one) => one.class).filter(Boolean))].join(" ") || null,
        title:
          open
            .map((one) => one.title)
            .filter(Boolean)
            .join("; ") || null,
        "data-marks": marks.length ? marks.join(" ") : null,
        text: piece,
      }),
    );
  }
  return node;
}

/* A text block, folded if it is long. `ranges` as above; `markdown: false` for what is no prose. */
export function textBlock(text, { ranges = [], name = "prose", markdown = true } = {}) {
  const string = text || "";
  const all = markdown ? [...markdownRanges(string), ...ranges] : ranges;
  const body = fillMarked(el("div", { class: "text " + name, dir: "auto" }), string, all);
  return skFolded(body, string);
}

/* `body` with a button that shows all of it, if `text` is long. */
export function folded(body, text) {
  let lines = 0;
  for (let at = text.indexOf("\n"); at >= 0 && lines <= FOLD_LINES; at = text.indexOf("\n", at + 1))
    lines++;
  if (text.length <= FOLD_CHARACTERS && lines <= FOLD_LINES) return body;
  const all = `Show all ${count(text.length)} characters`;
  const box = el("div", { class: "foldable folded" }, body);
  const button = skButton(
    all,
    () => {
      const folded = box.classList.toggle("folded");
      button.textContent = folded ? all : "Show less";
      button.setAttribute("aria-expanded", String(!folded));
      if (folded) box.scrollIntoView({ block: "nearest" });
    },
    { class: "unfold", "aria-expanded": "false" },
  );
  box.unfold = () => {
    if (box.classList.contains("folded")) button.click();
  };
  box.appendChild(button);
  return box;
}

/* What is folded away says which marks are in it, so that they are found before it was opened;
   it is open from the start where a check failed by it. */
export const holding = (ranges) => ({ "data-holds": ranges.flatMap((one) => one.marks).join(" ") || null });
export const opensFor = (ranges) => ranges.some((one) => /evidence-failed/.test(one.class));

let lit = [];

/* Lights up all pieces with a key, in a conversation; scrolls to the first. */
export function showMark(root, key, { scroll = true } = {}) {
  clearMarks();
  for (const fold of root.querySelectorAll("[data-holds]")) {
    if (fold.dataset.holds.split(" ").includes(key)) fold.buildInside();
  }
  lit = [...root.querySelectorAll("[data-marks]")].filter((node) =>
    node.dataset.marks.split(" ").includes(key),
  );
  for (const node of lit) node.classList.add("lit");
  if (lit.length && scroll) {
    unfoldAround(lit[0]);
    lit[0].scrollIntoView({ block: "center", behavior: calm() ? "auto" : "smooth" });
  }
  return lit.length;
}

/* Lights up one node, as if it were such a piece. */
export function lightUp(node) {
  clearMarks();
  lit = [node];
  node.classList.add("lit");
}

export function clearMarks() {
  for (const node of lit) node.classList.remove("lit");
  lit = [];
}

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
