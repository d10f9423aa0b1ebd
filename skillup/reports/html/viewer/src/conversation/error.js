/* What could not be held, and what to do about it; links to the raw streams; things to copy. */
import { announce, button as skButton, el, fold } from "../dom.js";
import { textBlock } from "../text/text.js";

/* `raw`: links to what the agent printed, where it is known. */
export function error(error, title, raw) {
  if (!error) return null;
  return el(
    "section",
    { class: "error-box", "aria-label": title },
    el(
      "h4",
      {},
      el("span", { class: "sign status-ERROR", "aria-hidden": "true" }, "! "),
      title + ": ",
      el("code", {}, error.kind),
    ),
    el("p", {}, error.message),
    error.advice
      ? el("p", { class: "advice" }, el("strong", {}, "What to do: "), withCode(error.advice))
      : null,
    raw && raw.length
      ? el("p", { class: "error-raw" }, el("strong", {}, "All that it printed: "), rawLinks(raw))
      : null,
    error.evidence
      ? fold(
          {},
          "Evidence",
          () => textBlock(error.evidence, { name: "code", markdown: false }),
          error.evidence.length < 2000,
        )
      : null,
  );
}

/* What stands between backticks in our own words. */
const withCode = (text) =>
  text.split("`").map((part, at) => (at % 2 ? el("code", {}, part) : part));

/* The streams of the last turn that has any. */
export function lastRaw(detail) {
  const turns = detail.turns.filter((turn) => (turn.raw || []).length);
  return turns.length ? turns[turns.length - 1].raw : null;
}

export function rawLinks(raw) {
  if (!raw || !raw.length) return null;
  const links = () =>
    el(
      "span",
      { class: "raw" },
      raw.map((one, at) => [at ? " " : null, el("a", { href: one.href }, one.name)]),
    );
  return raw.length > 6 ? fold({ class: "raw-fold" }, `Files (${raw.length})`, links) : links();
}

/* A short text with a button that copies it. */
export function copyable(text, what) {
  const button = skButton(
    "copy",
    async () => {
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        copyOldWay(text);
      }
      button.textContent = "copied";
      announce(what + " copied");
      setTimeout(() => {
        button.textContent = "copy";
      }, 1500);
    },
    { class: "copy", "aria-label": "Copy the " + what },
  );
  return el("span", { class: "copyable" }, el("code", {}, text), " ", button);
}

/* Pages that were opened from a file may not use the clipboard's own interface. */
function copyOldWay(text) {
  const area = el("textarea", { class: "visually-hidden", "aria-hidden": "true" });
  area.value = text;
  document.body.appendChild(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
