/* A text with places in it marked: evidence of checks, captures, differences. The text itself is
   never changed: ranges are offsets in it as it was written, also where its Markdown is drawn. */
import { h, type ComponentChild, type ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button, outside, say, sync, type Foldable } from "../dom";
import { count } from "./format";
import { parseMarkdown, type Drawn } from "./markdown";

export interface Range {
  start: number;
  end: number;
  class: string;
  title?: string;
  marks?: string[]; // keys, by which showMark finds the piece
}

const FOLD_CHARACTERS = 1800;
const FOLD_LINES = 28;

export interface Piece {
  text: string;
  ranges: Range[];
}

/* `text` cut where ranges, which may overlap, begin and end. */
export function pieces(text: string, ranges: Range[]): Piece[] {
  const good = ranges.filter(
    (one) => one.start < one.end && one.start >= 0 && one.end <= text.length,
  );
  const cuts = [...new Set([0, text.length, ...good.flatMap((one) => [one.start, one.end])])];
  cuts.sort((a, b) => a - b);
  const waiting = [...good].sort((a, b) => a.start - b.start);
  const found: Piece[] = [];
  let open: Range[] = [];
  for (let at = 0, next = 0; at + 1 < cuts.length; at++) {
    const [start, end] = [cuts[at]!, cuts[at + 1]!];
    open = open.filter((one) => one.end > start);
    while (next < waiting.length && waiting[next]!.start <= start) open.push(waiting[next++]!);
    found.push({ text: text.slice(start, end), ranges: open.slice() });
  }
  return found;
}

/* Pieces with keys are <mark data-marks="key key">. */
export function marked(text: string, ranges: Range[]): ComponentChild[] {
  if (!ranges.length) return [say(text)];
  return pieces(text, ranges).map((piece) => {
    if (!piece.ranges.length) return say(piece.text);
    const keys = keysOf(piece.ranges);
    const title = piece.ranges
      .map((one) => one.title)
      .filter(Boolean)
      .join("; ");
    const Tag = keys ? "mark" : "span";
    return (
      <Tag
        class={[...new Set(piece.ranges.map((one) => one.class))].join(" ")}
        title={title || undefined}
        data-marks={keys}
      >
        {piece.text}
      </Tag>
    );
  });
}

/* The keys of all of them, as an attribute. */
export const keysOf = (ranges: Range[]) =>
  ranges.flatMap((one) => one.marks || []).join(" ") || undefined;

export const opensFor = (ranges: Range[]) =>
  ranges.some((one) => /evidence-failed/.test(one.class));

/* What is folded away says which marks are in it; it is open from the start where a check failed by
   it. */
export const folded = (ranges: Range[]) => ({
  "data-holds": keysOf(ranges),
  start: opensFor(ranges),
});

/* What is inside, with a button that shows all of it, if `text` is long. */
export function Long({ text, children }: { text: string; children: ComponentChildren }) {
  const [folded, set] = useState(true);
  const node = useRef<HTMLDivElement>(null);
  const long =
    text.length > FOLD_CHARACTERS || text.split("\n", FOLD_LINES + 2).length > FOLD_LINES + 1;
  useLayoutEffect(() => {
    if (node.current)
      (node.current as Foldable).fold = (open) => open !== null && sync(() => set(!open));
  }, [long]);
  if (!long) return <>{children}</>;
  const onClick = () => {
    set(!folded);
    if (!folded) node.current?.scrollIntoView({ block: "nearest" });
  };
  return (
    <div ref={node} class={folded ? "foldable folded" : "foldable"}>
      {children}
      <Button class="unfold" aria-expanded={folded ? "false" : "true"} onClick={onClick}>
        {folded ? `Show all ${count(text.length)} characters` : "Show less"}
      </Button>
    </div>
  );
}

type TextProps = { text: string | null | undefined; ranges?: Range[]; name?: string };

/* A text as it was written. */
export const Text = ({ text, ranges = [], name = "prose" }: TextProps) => (
  <Long text={text || ""}>
    <div class={`text ${name}`} dir="auto">
      {marked(text || "", ranges)}
    </div>
  </Long>
);

/* What an agent said, with its Markdown drawn, and a button that shows it as it was written. One
   with a mark that stands on nothing but signs, which are not drawn, is shown as written. */
export function Answer({ text, ranges = [], name = "prose" }: TextProps) {
  const string = text || "";
  const [written, set] = useState(false);
  const nodes = parseMarkdown(string);
  const seen = new Set<Range>();
  const drawn = nodes && draw(string, nodes, ranges, seen);
  const lost = ranges.some((one) => one.start < one.end && one.marks?.length && !seen.has(one));
  if (!drawn || lost) return <Text text={string} ranges={ranges} name={name} />;
  return (
    <div class="rendered">
      {written ? (
        <Text text={string} ranges={ranges} name={name} />
      ) : (
        <Long text={string}>
          <div class={`text md ${name}`} dir="auto">
            {drawn}
          </div>
        </Long>
      )}
      <Button
        class="quiet as-written"
        title="The text with its Markdown signs, letter by letter"
        aria-pressed={written ? "true" : "false"}
        onClick={() => set(!written)}
      >
        as written
      </Button>
    </div>
  );
}

/* Elements of Markdown's nodes; adds to `seen` the ranges of which something is shown. */
function draw(text: string, nodes: Drawn[], ranges: Range[], seen: Set<Range>): ComponentChild[] {
  return nodes.map((node) => {
    if (typeof node === "string") return node;
    if ("tag" in node) {
      const inside = draw(text, node.children, ranges, seen);
      if (node.href) return outside(node.href, inside);
      return h(node.tag, { class: node.class, ...node.attributes }, inside);
    }
    const here: Range[] = [];
    for (const one of ranges) {
      if (one.start >= node.end || one.end <= node.start) continue;
      seen.add(one);
      const [start, end] = [Math.max(one.start, node.start), Math.min(one.end, node.end)];
      here.push({ ...one, start: start - node.start, end: end - node.start });
    }
    return <>{marked(text.slice(node.start, node.end), here)}</>;
  });
}
