/* Markdown, read by mdast, as nodes whose leaves are places in the text: nothing of it is made
   up. */
import type { Code, Image, Link, Nodes, Parents, Root, Table } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmTableFromMarkdown } from "mdast-util-gfm-table";
import { gfmTable } from "micromark-extension-gfm-table";

export type Place = { start: number; end: number };
export type Element = {
  tag: keyof HTMLElementTagNameMap;
  class?: string;
  href?: string;
  attributes?: Record<string, string | number>;
  children: Drawn[];
};
export type Drawn = Place | Element | string;

const LONGEST = 30000;
/* Without any of these a text is as it will be shown. */
const SIGNS = /[`*_~|#>[\\]|^[ \t]*(?:[-+=]|\d+[.)])/m;
/* What no reader writes, and what would take a parser long: very deep nesting, very many signs. */
const DEEP = /^(?:[ \t]*(?:>|[-+*]|\d{1,9}[.)])(?=[ \t>])){12}/m;
const MANY = /(?:[[*_`~!](?:\(?\w?\s?)){400}/;
/* Addresses that may be followed: no user names, which pass one host off as another, only ASCII. */
const ADDRESS = /^https?:\/\/[a-z0-9.-]+(:\d{1,5})?([/?#][!-~]*)?$/i;

const cache = new Map<string, Drawn[] | null>();

/* The nodes of a text; null: it has no Markdown, or is too long. */
export function parseMarkdown(text: string): Drawn[] | null {
  let found = cache.get(text);
  if (found === undefined) {
    if (cache.size > 500) cache.clear();
    found = parse(text);
    cache.set(text, found);
  }
  return found;
}

function parse(text: string): Drawn[] | null {
  if (text.length > LONGEST || !SIGNS.test(text) || DEEP.test(text) || MANY.test(text)) return null;
  const tree: Root = fromMarkdown(text, {
    extensions: [gfmTable()],
    mdastExtensions: [gfmTableFromMarkdown()],
  });
  const nodes = tree.children.flatMap((node) => drawn(text, node, false));
  const bare = (node: Drawn): boolean =>
    typeof node === "string" || !("tag" in node) || (node.tag === "p" && node.children.every(bare));
  return nodes.every(bare) ? null : nodes;
}

const from = (node: Nodes) => node.position!.start.offset!;
const to = (node: Nodes) => node.position!.end.offset!;

function drawn(text: string, node: Nodes, nested: boolean): Drawn[] {
  const deeper = nested || node.type === "blockquote" || node.type === "listItem";
  const inside = () => (node as Parents).children.flatMap((child) => drawn(text, child, deeper));
  const element = (tag: Element["tag"], more: Partial<Element> = {}): Drawn[] => [
    { tag, children: inside(), ...more },
  ];
  const [start, end] = [from(node), to(node)];
  switch (node.type) {
    case "paragraph":
      return element("p");
    case "heading": {
      const level = Math.min(node.depth + 3, 6);
      const attributes = { role: "heading", "aria-level": level };
      return element("div", { class: `md-heading md-heading-${node.depth}`, attributes });
    }
    case "blockquote":
      return element("blockquote");
    case "list":
      return element(node.ordered ? "ol" : "ul");
    case "listItem": {
      const number = /^\d+/.exec(text.slice(start, start + 10));
      return element("li", number ? { attributes: { value: Number(number[0]) } } : {});
    }
    case "strong":
      return element("strong");
    case "emphasis":
      return element("em");
    case "thematicBreak":
      return [{ tag: "hr", children: [] }];
    case "break":
      return ["\n"];
    case "inlineCode": {
      const match = /^(`+)([^]*?)\1$/.exec(text.slice(start, end));
      const signs = match ? match[1]!.length : 0;
      const children = lines(text, start + signs, end - signs, nested);
      return [{ tag: "code", class: "md-code", children }];
    }
    case "code":
      return [fence(text, start, end, node)];
    case "table":
      return [table(text, node)];
    case "link":
    case "image":
      return link(text, node, nested);
    case "text":
      return lines(text, start, end, nested, true);
    default: // HTML, references, definitions: as they were written
      return lines(text, start, end, nested);
  }
}

/* The places of a text that may go on in further lines, without what a list or a quotation put
   before these, and without the signs that only keep others from being Markdown. */
function lines(
  text: string,
  start: number,
  end: number,
  nested: boolean,
  escapes = false,
): Drawn[] {
  const found: Drawn[] = [];
  let at = start;
  for (const line of text.slice(start, end).split(/(?<=\n)/)) {
    const first = nested && at > start ? at + /^[ \t>]*/.exec(line)![0].length : at;
    const until = at + line.length;
    let from = first;
    if (escapes)
      for (const match of text.slice(first, until).matchAll(/\\[!-/:-@[-`{-~]/g)) {
        const sign = first + match.index;
        if (sign > from) found.push({ start: from, end: sign });
        from = sign + 1;
      }
    if (until > from) found.push({ start: from, end: until });
    at = until;
  }
  return found;
}

/* A line of code is the end of its line in the text; one that is not, by a tab, is no place. */
function fence(text: string, start: number, end: number, node: Code): Element {
  const source = text.slice(start, end).split("\n");
  const fenced = /^(```|~~~)/.test(source[0]!) ? 1 : 0;
  const body: Drawn[] = [];
  let at = start + (fenced ? source[0]!.length + 1 : 0);
  node.value.split("\n").forEach((line, n) => {
    const whole = source[n + fenced] ?? "";
    const until = at + whole.replace(/\r$/, "").length;
    if (n) body.push("\n");
    if (line && text.slice(at, until).endsWith(line))
      body.push({ start: until - line.length, end: until });
    else if (line) body.push(line);
    at += whole.length + 1;
  });
  const children: Drawn[] = [{ tag: "pre", children: [{ tag: "code", children: body }] }];
  const language = node.lang ? text.indexOf(node.lang, start) : -1;
  if (node.lang && language >= 0) {
    const place = { start: language, end: language + node.lang.length };
    children.unshift({ tag: "span", class: "md-language", children: [place] });
  }
  return { tag: "div", class: "md-fence", children };
}

function table(text: string, node: Table): Element {
  const rows = node.children.map((row, at): Element => {
    const cells = row.children.map((cell): Element => ({
      tag: at ? "td" : "th",
      children: cell.children.flatMap((child) => drawn(text, child, false)),
    }));
    return { tag: "tr", children: cells };
  });
  const head: Element = { tag: "thead", children: rows.slice(0, 1) };
  const body: Element = { tag: "tbody", children: rows.slice(1) };
  const attributes = { tabindex: "0", role: "region", "aria-label": "Table" };
  return {
    tag: "div",
    class: "md-table",
    attributes,
    children: [{ tag: "table", children: [head, body] }],
  };
}

/* The words and the address, both as written: nobody is led where they do not see. */
function link(text: string, node: Link | Image, nested: boolean): Drawn[] {
  const [start, end] = [from(node), to(node)];
  const open = start + (node.type === "image" ? 2 : 1);
  const close = text.lastIndexOf("](", text.indexOf(node.url, open));
  const at = node.url ? text.indexOf(node.url, close) : -1;
  if (close < open || at < 0 || at + node.url.length > end) return lines(text, start, end, nested);
  const place = { start: at, end: at + node.url.length };
  const target: Element = ADDRESS.test(node.url)
    ? { tag: "a", href: node.url, children: [place] }
    : { tag: "code", class: "md-code", children: [place] };
  const inside =
    node.type === "link"
      ? node.children.flatMap((child) => drawn(text, child, nested))
      : lines(text, open, close, nested, true);
  const alone = close === open || text.slice(open, close) === node.url;
  return [
    { tag: "span", class: "md-link", children: alone ? [target] : [...inside, " (", target, ")"] },
  ];
}
