/* Elements that all views use. Whatever an agent, a case or a file wrote passes through `guard`,
   which makes text nodes of it; no HTML is ever parsed. */
import {
  options,
  type ComponentChild,
  type ComponentChildren,
  type HTMLAttributes,
  type VNode,
} from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { STATUS } from "./state";

/* Characters that would change how their neighbours are shown, or that show as nothing: terminal
   controls, marks of writing direction, zero-width characters, tags, lone surrogates. */
const HIDDEN = new RegExp(
  String.raw`[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e]` +
    String.raw`|[\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]` +
    String.raw`|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]`,
  "g",
);

const code = (character: string) =>
  "U+" + character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");

function visible(character: string): string {
  const number = character.charCodeAt(0);
  if (number < 0x20) return String.fromCharCode(0x2400 + number);
  return number === 0x7f ? "\u2421" : `[${code(character)}]`;
}

export const plain = (text: string) => text.replace(HIDDEN, visible);

/* A text with marked stand-ins for its hidden characters. */
export function say(text: string): ComponentChild {
  const string = text.replace(/\r\n/g, "\n");
  if (string.search(HIDDEN) < 0) return string;
  const parts: ComponentChild[] = [];
  let last = 0;
  for (const match of string.matchAll(HIDDEN)) {
    parts.push(
      string.slice(last, match.index),
      <span class="hidden-character" title={code(match[0])}>
        {visible(match[0])}
      </span>,
    );
    last = match.index + match[0].length;
  }
  return [...parts, string.slice(last)] as unknown as ComponentChild;
}

/* Links lead to places in this page and to files beside it; to nothing else. Links out of it are
   made by `outside`, which tells the other side nothing and gives it no hold of this window. */
export function safeHref(href: string): string {
  if (href.startsWith("#")) return href;
  return /^[a-z][a-z0-9+.-]*:|^[\\/]{2}|[\u0000-\u0020\\]/i.test(href) ? "#" : href;
}

const OUTSIDE = "noopener noreferrer";
export const outside = (href: string, inside: ComponentChildren) => (
  <a class="outside" rel={OUTSIDE} target="_blank" href={/^https?:\/\//i.test(href) ? href : "#"}>
    {inside}
  </a>
);

const clean = (child: unknown): unknown =>
  typeof child === "string" ? say(child) : Array.isArray(child) ? child.map(clean) : child;

export function guard(): void {
  options.vnode = (vnode: VNode<Record<string, unknown>>) => {
    const { type, props } = vnode;
    if (typeof type !== "string") return;
    if ("children" in props) props.children = clean(props.children) as ComponentChildren;
    for (const [name, value] of Object.entries(props)) {
      if (typeof value !== "string" || name === "children" || name === "value") continue;
      if (name === "href") props.href = props.rel === OUTSIDE ? value : safeHref(value);
      else props[name] = plain(value);
    }
  };
}

/* Draws at once what `change` asks for, for those who go on with the elements themselves. */
export function sync(change: () => void): void {
  const before = options.debounceRendering;
  options.debounceRendering = (draw: () => void) => draw();
  try {
    change();
  } finally {
    options.debounceRendering = before;
  }
}

export const behaviour = (): ScrollBehavior =>
  matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
export const byId = (id: string) => document.getElementById(id);
export const announce = (text: string) => void (byId("status")!.textContent = text);

export const Button = (props: HTMLAttributes<HTMLButtonElement>) => (
  <button type="button" {...(props as object)} />
);

/* What a node that can be unfolded is told by: true or false; null only has its inside made. */
export type Foldable = HTMLElement & { fold?: (open: boolean | null) => void };

type FoldProps = {
  summary: ComponentChildren;
  inside: () => ComponentChildren;
  start?: boolean;
  onOpen?: (node: HTMLElement) => void;
  class?: string;
  [data: `data-${string}`]: string | number | null | undefined;
};

/* A <details> whose inside is made when it is first opened (or when all is to be printed). */
export function Fold({ summary, inside, start = false, onOpen, ...rest }: FoldProps) {
  const [{ open, built }, set] = useState({ open: start, built: start });
  const node = useRef<HTMLDetailsElement>(null);
  const become = (wanted: boolean | null) =>
    set((now) => ({ open: wanted ?? now.open, built: true }));
  useLayoutEffect(() => {
    (node.current as Foldable).fold = (wanted) => sync(() => become(wanted));
  }, []);
  const onClick = () => {
    become(null); // before the browser opens it, so that it never shows empty
    if (!open && onOpen) onOpen(node.current!);
  };
  const onToggle = () => {
    if (node.current && node.current.open !== open) become(node.current.open);
  };
  return (
    <details ref={node} open={open} onToggle={onToggle} {...rest}>
      <summary onClick={onClick}>{summary}</summary>
      {built ? inside() : null}
    </details>
  );
}

/* Opens all that a node is folded into. */
export function unfoldAround(node: Element): void {
  for (let at: Element | null = node; at; at = at.parentElement) (at as Foldable).fold?.(true);
}

let lit: Element[] = [];
export function lightUp(...nodes: Element[]): void {
  for (const node of lit) node.classList.remove("lit");
  for (const node of nodes) node.classList.add("lit");
  lit = nodes;
}

/* Lights up all pieces with a key, in the conversation that `from` is in, of two that on its own
   side; scrolls to the first. What is folded away says by data-holds which marks are in it. */
export function showMark(from: Element, key: string): void {
  const side = from.closest(".side-A, .side-B")?.classList.item(1);
  const root = from.closest(side ? "article.pair" : ".attempt-turns, .conversation");
  const find = (name: string) => {
    const what = `[data-${name}~="${CSS.escape(plain(key))}"]`;
    return [...(root?.querySelectorAll<Foldable>(side ? `.${side} ${what}` : what) || [])];
  };
  for (const one of find("holds")) one.fold?.(null);
  const found = find("marks");
  lightUp(...found);
  if (!found[0]) return;
  unfoldAround(found[0]);
  found[0].scrollIntoView({ block: "center", behavior: behaviour() });
}

export const Sign = (props: { sign: string } | { status: string }) => (
  <span class="sign" aria-hidden="true">
    {"sign" in props ? props.sign : STATUS[props.status]?.sign}
  </span>
);

/* How something came out: "✓", "passed", "PASS". */
export type Mark = { sign: string; word: string; status: string };
export const SignAndWord = ({ sign, word, status }: Mark) => (
  <span class={`status status-${status}`}>
    <Sign sign={sign} /> {word}
  </span>
);

export const Status = ({ status }: { status: string }) => (
  <SignAndWord {...STATUS[status]!} status={status} />
);

export const Hidden = ({ text }: { text: string }) => <span class="visually-hidden">{text}</span>;
export const Aside = (props: { children: ComponentChildren }) => <span class="aside" {...props} />;

export const Verdict = ({ sign, word, status }: Mark) => (
  <span class={`sign status-${status}`} title={word.trim()}>
    <span aria-hidden="true">{sign}</span>
    <Hidden text={word} />
  </span>
);

export interface Cell {
  head?: ComponentChildren;
  number?: ComponentChildren;
  text?: ComponentChildren;
  title?: string | null;
  class?: string;
}

type Headed = { heads: string[]; caption: string };

/* What a table is called, for those who do not see it, and its columns. */
export const TableHead = ({ heads, caption }: Headed) => (
  <>
    <caption class="visually-hidden">{caption}</caption>
    <thead>
      <tr>
        {heads.map((head) => (
          <th scope="col">{head}</th>
        ))}
      </tr>
    </thead>
  </>
);

/* A small table. */
export function Table({ heads, rows, caption }: Headed & { rows: Cell[][] }) {
  const cell = (one: Cell) =>
    one.head !== undefined ? (
      <th scope="row">{one.head}</th>
    ) : (
      <td
        class={one.number === undefined ? "" : `number ${one.class || ""}`}
        title={one.title || undefined}
      >
        {one.number ?? one.text}
      </td>
    );
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table class="small">
        <TableHead heads={heads} caption={caption} />
        <tbody>
          {rows.map((row) => (
            <tr>{row.map(cell)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
