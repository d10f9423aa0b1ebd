/* The keyboard. Single keys act only outside fields and without modifiers; Tab, Enter and the
   browser's own keys are left alone. Each page says which keys it answers by SK.page.keys. */
import { button, el } from "../dom.js";
import { print } from "./print.js";
import { page } from "../state.js";
import { toggleTheme } from "./theme.js";

const COMMON = [
  ["?", "show or hide these keys"],
  ["t", "light or dark"],
  ["Esc", "back"],
];

function inField(target) {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName))
  );
}

export function startKeys() {
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "p" && !event.shiftKey) {
      event.preventDefault();
      print();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape") return escape(event);
    if (inField(event.target)) {
      if (event.target.id !== "filter-text" || !/^ArrowDown$/.test(event.key)) return;
    }
    if (event.key === "?") {
      event.preventDefault();
      return toggleHelp();
    }
    if (document.getElementById("help")) return;
    if (event.key === "t") return toggleTheme();
    // Arrows scroll, as everywhere, unless the reader is in the table already.
    if (event.key.startsWith("Arrow") && !(inField(event.target) || event.target.closest("#rows"))) return;
    const action = (page.keys || []).find(([keys]) => keys.split(" ").includes(event.key));
    if (action) {
      event.preventDefault();
      action[2](event);
    }
  });
}

function escape(event) {
  if (document.getElementById("help")) return toggleHelp();
  if (inField(event.target)) return event.target.blur();
  if (page.back) {
    event.preventDefault();
    page.back();
  }
}

/* The list of keys, as a dialog that gives the focus back to where it was. */
export function toggleHelp() {
  const open = document.getElementById("help");
  if (open) {
    open.close();
    return;
  }
  const close = button("Close", () => dialog.close(), { class: "quiet" });
  const keys = [...(page.keys || []), ...COMMON].map(([key, what]) => [
    el(
      "dt",
      {},
      key.split(" ").flatMap((one, at) => [at ? " " : null, el("kbd", {}, name(one))]),
    ),
    el("dd", {}, what),
  ]);
  const dialog = el(
    "dialog",
    { id: "help", "aria-labelledby": "help-title" },
    el("h2", { id: "help-title" }, "Keys"),
    el("dl", { class: "keys" }, keys),
    close,
  );
  const before = document.activeElement;
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (before instanceof HTMLElement) before.focus();
  });
  document.body.appendChild(dialog);
  dialog.showModal();
}

function name(key) {
  return { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→" }[key] || key;
}
