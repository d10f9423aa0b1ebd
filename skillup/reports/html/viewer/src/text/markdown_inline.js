/* Markdown within a line. Nothing of the text is changed or made up: what is shown are places in it,
   {start, end}, with the signs left out; they stand in nodes {tag, class, children}. */
const DEEPEST = 4;
const LONGEST_LINE = 5000;
const LINK = /\[([^[\]]*)\]\(([^\s()<>]*)\)/y;
/* Addresses that may be followed: no user names, which pass one host off as another, only ASCII. */
const OUTSIDE = /^https?:\/\/[a-z0-9.-]+(:\d{1,5})?([/?#][!-~]*)?$/i;
const wordly = (character) => character !== undefined && /[\p{L}\p{N}_]/u.test(character);

/* The nodes of text[start..end), which is one line. */
export function markdownLine(text, start, end, depth = 0) {
  if (end - start > LONGEST_LINE || depth > DEEPEST) return [{ start, end }];
  const line = text.slice(0, end);
  const nodes = [];
  let from = start; // what is not in a node yet
  function put(at, next, ...made) {
    if (at > from) nodes.push({ start: from, end: at });
    nodes.push(...made);
    from = next;
  }
  let at = start;
  while (at < end) {
    const sign = line[at];
    if (sign === "\\") at += 2;
    else if (sign === "`") {
      const run = /`+/y;
      run.lastIndex = at;
      const ticks = run.exec(line)[0];
      const close = closing(line, ticks, at + ticks.length);
      if (close > 0) {
        put(at, close + ticks.length, {
          tag: "code",
          class: "md-code",
          children: [{ start: at + ticks.length, end: close }],
        });
        at = from;
      } else at += ticks.length;
    } else if (sign === "*") {
      const found = emphasis(line, at, start, end);
      if (found) {
        const inside = markdownLine(text, at + found.width, found.close, depth + 1);
        put(at, found.close + found.width, { tag: found.width === 2 ? "strong" : "em", children: inside });
        at = from;
      } else at += line.startsWith("**", at) ? 2 : 1;
    } else if (sign === "[" || (sign === "!" && line[at + 1] === "[")) {
      const open = sign === "!" ? at + 1 : at;
      LINK.lastIndex = open;
      const match = LINK.exec(line);
      if (match && match[2]) {
        put(at, LINK.lastIndex, link(text, match, open, depth));
        at = from;
      } else at = open + 1;
    } else at += 1;
  }
  if (end > from) nodes.push({ start: from, end });
  return nodes;
}

/* Where a run of exactly these backticks closes; -1: nowhere. */
function closing(line, ticks, from) {
  for (let at = line.indexOf(ticks, from); at >= 0; at = line.indexOf(ticks, at)) {
    let end = at + ticks.length;
    while (line[end] === "`") end++;
    if (end - at === ticks.length && at > from) return at;
    at = end;
  }
  return -1;
}

/* {width: 1 | 2, close}; a sign with a space inside of it, or amid a word, is only a star. */
function emphasis(line, at, start, end) {
  const width = line[at + 1] === "*" ? 2 : 1;
  const before = at > start ? line[at - 1] : undefined;
  const first = line[at + width];
  if (first === undefined || /[\s*]/.test(first) || before === "*" || (width === 1 && wordly(before)))
    return null;
  const sign = "*".repeat(width);
  for (let close = line.indexOf(sign, at + width + 1); close >= 0 && close + width <= end; ) {
    const after = line[close + width];
    const whole = line[close - 1] !== "*" || width === 2;
    if (!/\s/.test(line[close - 1]) && whole && after !== "*" && !(width === 1 && wordly(after)))
      return { width, close };
    close = line.indexOf(sign, close + width);
  }
  return null;
}

/* The words and the address, both as written: nobody is led where they do not see. */
function link(text, match, open, depth) {
  const words = open + 1;
  const address = words + match[1].length + 2;
  const shown = { start: address, end: address + match[2].length };
  const place = OUTSIDE.test(match[2])
    ? { tag: "a", outside: match[2], children: [shown] }
    : { tag: "code", class: "md-code", children: [shown] };
  if (!match[1] || match[1] === match[2]) return { tag: "span", class: "md-link", children: [place] };
  const said = markdownLine(text, words, words + match[1].length, depth + 1);
  return { tag: "span", class: "md-link", children: [...said, { made: " (" }, place, { made: ")" }] };
}
