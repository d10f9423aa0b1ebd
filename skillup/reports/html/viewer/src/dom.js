/* Building the page. Everything that an agent, a case or a file wrote comes in through SK.el and
   SK.say, which make text nodes; no HTML is ever parsed. */
const BOOLEAN = new Set(["hidden", "disabled", "open", "checked"]);

/* An element. `attributes`: names to values; `on` holds listeners, `text` its text; null and
   undefined are left out. Children: nodes, strings, null, or lists of these. */
export function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (name === "text") say(node, value);
    else if (BOOLEAN.has(name)) {
      if (value) node.setAttribute(name, "");
    } else if (name === "style") node.style.cssText = value;
    else if (name === "href") node.setAttribute("href", safeHref(String(value)));
    else if (name.startsWith("on")) throw new Error("listeners go into `on`: " + name);
    else node.setAttribute(name, attributeText(String(value)));
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(node, child);
    else if (child instanceof Node) node.appendChild(child);
    else say(node, String(child));
  }
}

export function replace(node, ...children) {
  node.replaceChildren();
  append(node, children);
  return node;
}

/* Links lead to places in this page and to files beside it; to nothing else. */
export function safeHref(href) {
  if (href.startsWith("#")) return href;
  return /^[a-z][a-z0-9+.-]*:|^[\\/]{2}|[\u0000-\u0020\\]/i.test(href) ? "#" : href;
}

/* Characters that would change how their neighbours are shown, or that show as nothing: terminal
   controls, marks of writing direction, zero-width characters, tags, lone surrogates. */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function code(character) {
  return "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
}

function visible(character) {
  const number = character.charCodeAt(0);
  if (number < 0x20) return String.fromCharCode(0x2400 + number);
  if (number === 0x7f) return "\u2421";
  return "[" + code(character) + "]";
}

function attributeText(text) {
  return text.replace(HIDDEN, visible);
}
export const plain = attributeText;

/* Adds text to a node; hidden characters are shown as marked stand-ins. */
export function say(node, text) {
  const string = text === null || text === undefined ? "" : String(text).replace(/\r\n/g, "\n");
  let last = 0;
  for (const match of string.matchAll(HIDDEN)) {
    if (match.index > last) node.appendChild(document.createTextNode(string.slice(last, match.index)));
    const stand = document.createElement("span");
    stand.className = "hidden-character";
    stand.title = code(match[0]);
    stand.textContent = visible(match[0]);
    node.appendChild(stand);
    last = match.index + match[0].length;
  }
  if (last < string.length) node.appendChild(document.createTextNode(string.slice(last)));
  return node;
}

export function announce(text) {
  document.getElementById("status").textContent = text;
}

/* The same, also for those who see, for a moment: what a key did where nothing else shows it. */
export function tell(text) {
  announce(text);
  document.querySelectorAll(".told").forEach((one) => one.remove());
  const note = el("p", { class: "told", "aria-hidden": "true" }, text);
  document.body.append(note);
  setTimeout(() => note.remove(), 4000);
}

/* A button that is not for sending anything. */
export function button(label, onClick, attributes) {
  return el("button", { type: "button", on: { click: onClick }, ...attributes }, label);
}

/* A <details> whose inside is built when it is first opened (or when all is to be printed). */
export function fold(attributes, summary, build, open) {
  const node = el("details", attributes, el("summary", {}, summary));
  let built = false;
  node.buildInside = function () {
    if (built) return;
    built = true;
    append(node, [build()]);
  };
  // Before the browser opens it, so that it never shows empty; however it is opened.
  node.firstChild.addEventListener("click", () => node.buildInside());
  node.addEventListener("toggle", () => {
    if (node.open) node.buildInside();
  });
  if (open) {
    node.buildInside();
    node.open = true;
  }
  return node;
}

/* Opens all that a node is folded into. */
export function unfoldAround(node) {
  for (let at = node; at; at = at.parentElement) {
    if (at.tagName === "DETAILS") {
      if (at.buildInside) at.buildInside();
      at.open = true;
    }
    if (at.unfold) at.unfold();
  }
}
