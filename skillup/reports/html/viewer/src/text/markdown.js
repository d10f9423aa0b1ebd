/* Markdown, lightly: headings, lists, tables, fences, quotations. A text becomes a tree of nodes
   {tag, class, attributes, children}, whose leaves are places in the text, {start, end}, or signs that
   stand for what was left out, {made}. Lines are {start, end}, without what a list or quotation
   put before them. */
import { markdownLine } from "./markdown_inline.js";

const LONGEST = 60000;
const DEEPEST = 5;
/* Nothing in these can be matched in two ways: else a long line would take minutes. */
const FENCE = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})(?:([-*+])|(\d{1,9})[.)])([ \t]+)(?=\S)/;
const COLUMNS = /^[ \t]*(?:\|[ \t]*)?:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*(?:\|[ \t]*)?$/;
/* Without any of these a text is as it will be shown. */
const SIGNS = /[`*|#>[]|^[ \t]*(?:[-+~_]|\d+[.)])/m;

/* The nodes of a text; null: it has no Markdown, or is too long. */
export function markdown(text) {
  if (text.length > LONGEST || !SIGNS.test(text)) return null;
  const nodes = blocks(text, linesOf(text), 0);
  const marked = (node) => node.tag && (!["p"].includes(node.tag) || (node.children || []).some(marked));
  return nodes.some(marked) ? nodes : null;
}

function linesOf(text) {
  const lines = [];
  let start = 0;
  while (start <= text.length) {
    let end = text.indexOf("\n", start);
    if (end < 0) end = text.length;
    lines.push({ start, end: text[end - 1] === "\r" && end > start ? end - 1 : end });
    start = end + 1;
  }
  return lines;
}

function blocks(text, lines, depth) {
  const say = (at) => text.slice(lines[at].start, lines[at].end);
  const nodes = [];
  let at = 0;
  while (at < lines.length) {
    const line = say(at);
    const from = at;
    const fence = FENCE.exec(line);
    const item = ITEM.exec(line);
    if (!line.trim()) at++;
    else if (fence) {
      at = fenceEnd(say, lines.length, at + 1, fence[1]);
      const closed = at < lines.length;
      nodes.push(code(lines.slice(from + 1, at), lines[from], fence));
      if (closed) at++;
    } else if (RULE.test(line)) {
      nodes.push({ tag: "hr", children: [] });
      at++;
    } else if (HEADING.test(line)) {
      nodes.push(heading(text, lines[at++], HEADING.exec(line)));
    } else if (isTable(text, lines, at)) {
      at += 2;
      while (at < lines.length && say(at).trim() && say(at).includes("|")) at++;
      nodes.push(table(text, lines.slice(from, at)));
    } else if (QUOTE.test(line) && depth < DEEPEST) {
      while (at < lines.length && QUOTE.test(say(at))) at++;
      const inner = lines
        .slice(from, at)
        .map((one) => ({
          start: one.start + QUOTE.exec(text.slice(one.start, one.end))[0].length,
          end: one.end,
        }));
      nodes.push({ tag: "blockquote", children: blocks(text, inner, depth + 1) });
    } else if (item && depth < DEEPEST) {
      at = list(text, lines, at, depth, nodes);
    } else {
      at++;
      while (at < lines.length && say(at).trim() && !begins(text, lines, at)) at++;
      nodes.push({ tag: "p", children: joined(text, lines.slice(from, at)) });
    }
  }
  return nodes;
}

/* Whether something begins there that is no more of the paragraph before. */
function begins(text, lines, at) {
  const line = text.slice(lines[at].start, lines[at].end);
  const item = ITEM.exec(line);
  return (
    FENCE.test(line) ||
    HEADING.test(line) ||
    RULE.test(line) ||
    QUOTE.test(line) ||
    (item && (item[2] || item[3] === "1")) ||
    isTable(text, lines, at)
  );
}

function joined(text, lines) {
  return lines.flatMap((line, at) => [
    ...(at ? [{ made: "\n" }] : []),
    ...markdownLine(text, line.start, line.end),
  ]);
}

function fenceEnd(say, count, at, fence) {
  const close = new RegExp(`^ {0,3}\\${fence[0]}{${fence.length},}[ \\t]*$`);
  while (at < count && !close.test(say(at))) at++;
  return at;
}

function code(lines, first, fence) {
  const language = fence[2].trim();
  const start = first.end - fence[2].trimStart().length;
  const body = lines.flatMap((line, at) => [...(at ? [{ made: "\n" }] : []), line]);
  return {
    tag: "div",
    class: "md-fence",
    children: [
      language
        ? { tag: "span", class: "md-language", children: [{ start, end: start + language.length }] }
        : null,
      { tag: "pre", children: [{ tag: "code", children: body }] },
    ].filter(Boolean),
  };
}

function heading(text, line, match) {
  const level = Math.min(match[1].length, 6);
  return {
    tag: "div",
    class: "md-heading md-heading-" + level,
    attributes: { role: "heading", "aria-level": Math.min(level + 3, 6) },
    children: markdownLine(text, line.start + match[0].length, line.end),
  };
}

/* One list from `at` on; gives where it ends. Items go on in lines that stand further right. */
function list(text, lines, at, depth, nodes) {
  const say = (place) => text.slice(lines[place].start, lines[place].end);
  const first = ITEM.exec(say(at));
  const node = { tag: first[2] ? "ul" : "ol", children: [] };
  nodes.push(node);
  while (at < lines.length) {
    const match = ITEM.exec(say(at));
    if (!match || Boolean(match[2]) !== Boolean(first[2]) || RULE.test(say(at))) break;
    const indent = match[0].length;
    const inner = [{ start: lines[at].start + indent, end: lines[at].end }];
    at++;
    let blank = 0;
    while (at < lines.length) {
      const line = say(at);
      const space = line.length - line.trimStart().length;
      if (!line.trim()) blank++;
      else if (space >= Math.min(indent, match[1].length + 2)) {
        blank = 0;
      } else if (blank || begins(text, lines, at) || ITEM.test(line)) break;
      const less = line.trim() ? Math.min(space, indent) : 0;
      inner.push({ start: lines[at].start + less, end: lines[at].end });
      at++;
    }
    node.children.push({
      tag: "li",
      attributes: match[3] ? { value: Number(match[3]) } : null,
      children: blocks(text, inner, depth + 1),
    });
  }
  return at;
}

function cells(text, line) {
  const found = [];
  let { start, end } = line;
  while (start < end && /\s/.test(text[start])) start++;
  while (end > start && /\s/.test(text[end - 1])) end--;
  if (text[start] === "|") start++;
  if (end > start && text[end - 1] === "|" && text[end - 2] !== "\\") end--;
  let from = start;
  for (let at = start; at <= end; at++) {
    if (at < end && text[at] === "\\") at++;
    else if (at === end || text[at] === "|") {
      let [left, right] = [from, at];
      while (left < right && /\s/.test(text[left])) left++;
      while (right > left && /\s/.test(text[right - 1])) right--;
      found.push({ start: left, end: right });
      from = at + 1;
    }
  }
  return found;
}

function isTable(text, lines, at) {
  if (at + 1 >= lines.length) return false;
  const [head, below] = [lines[at], lines[at + 1]];
  const line = text.slice(below.start, below.end);
  return (
    line.includes("-") &&
    line.includes("|") &&
    text.slice(head.start, head.end).includes("|") &&
    COLUMNS.test(line) &&
    cells(text, head).length === cells(text, below).length
  );
}

function table(text, [head, , ...rows]) {
  const row = (line, tag) => ({
    tag: "tr",
    children: cells(text, line).map((cell) => ({
      tag,
      children: markdownLine(text, cell.start, cell.end),
    })),
  });
  return {
    tag: "div",
    class: "md-table",
    attributes: { tabindex: "0", role: "region", "aria-label": "Table" },
    children: [
      {
        tag: "table",
        children: [
          { tag: "thead", children: [row(head, "th")] },
          { tag: "tbody", children: rows.map((line) => row(line, "td")) },
        ],
      },
    ],
  };
}
