/* A message with its Markdown drawn, by elements of this list alone, and a button that shows it as
   it was written. Marked places are places in the text as written; one that stands on nothing but
   signs that are not drawn has the message shown as written. */
import { announce, button as skButton, el, replace, say } from "../dom.js";
import { markdown } from "./markdown.js";
import { fillMarked, folded, textBlock } from "./text.js";

const TAGS = new Set(
  "p div span pre code ul ol li blockquote hr table thead tbody tr th td strong em a".split(" "),
);
let asWritten = false; // for all messages, until the page is left

/* The nodes of markdown as elements; null: a marked place could not be shown among them. */
export function drawMarkdown(text, nodes, ranges, body) {
  const seen = new Set();
  const bySpot = [...ranges].sort((a, b) => a.start - b.start);
  function leaf(parent, { start, end }) {
    const here = [];
    for (const one of bySpot) {
      if (one.start >= end) break;
      if (one.end <= start) continue;
      seen.add(one);
      here.push({ ...one, start: Math.max(one.start, start) - start, end: Math.min(one.end, end) - start });
    }
    fillMarked(parent, text.slice(start, end), here);
  }
  function draw(parent, node) {
    if (node.made !== undefined) say(parent, node.made);
    else if (!node.tag) leaf(parent, node);
    else if (TAGS.has(node.tag)) {
      const attributes = { class: node.class, ...node.attributes };
      const made = node.tag === "a" ? outside(node.outside) : el(node.tag, attributes);
      for (const child of node.children || []) draw(made, child);
      parent.appendChild(made);
    }
  }
  for (const node of nodes) draw(body, node);
  const lost = bySpot.some((one) => one.start < one.end && (one.marks || []).length && !seen.has(one));
  return lost ? null : body;
}

/* A link out of this page: it tells the other side nothing, and gets no hold of this window. */
export function outside(address) {
  const link = el("a", { class: "outside", rel: "noopener noreferrer", target: "_blank" });
  if (/^https?:\/\//i.test(address)) link.setAttribute("href", address);
  return link;
}

/* As textBlock, for what an agent said. */
export function answerBlock(text, { ranges = [], name = "prose" } = {}) {
  const string = text || "";
  const nodes = markdown(string);
  const drawn =
    nodes && drawMarkdown(string, nodes, ranges, el("div", { class: `text md ${name}`, dir: "auto" }));
  if (!drawn) return textBlock(string, { ranges, name, markdown: false });
  const box = el("div", { class: "rendered" });
  const written = () => textBlock(string, { ranges, name, markdown: false });
  const fresh = () =>
    folded(
      drawMarkdown(string, nodes, ranges, el("div", { class: `text md ${name}`, dir: "auto" })),
      string,
    );
  const button = skButton("as written", () => show(button.getAttribute("aria-pressed") !== "true"), {
    class: "quiet as-written",
    title: "The text with its Markdown signs, letter by letter",
  });
  function show(raw) {
    const open = box.firstChild && !box.querySelector(".folded");
    replace(box, raw ? written() : fresh(), button);
    button.setAttribute("aria-pressed", String(raw));
    if (open && box.firstChild.unfold) box.firstChild.unfold();
  }
  box.asWritten = show;
  replace(box, asWritten ? written() : folded(drawn, string), button);
  button.setAttribute("aria-pressed", String(asWritten));
  return box;
}

/* All messages that are shown, and those that will be. */
export function toggleAsWritten() {
  asWritten = !asWritten;
  for (const box of document.querySelectorAll("main .rendered")) box.asWritten(asWritten);
  announce(asWritten ? "Messages as they were written" : "Messages with their Markdown drawn");
}
