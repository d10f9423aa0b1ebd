/* Times that run on while a trial or a run does, between what the server tells of it. */
import { el } from "../dom.js";
import { duration } from "../format.js";
import { page } from "../state.js";

let ticking = null;

/* How long it is since `iso`, by the clock of the machine that holds the run. */
export function timeSince(iso) {
  const { now } = page.index.run;
  if (page.mode === "report") return duration(Date.parse(now) - Date.parse(iso));
  const ahead = Date.parse(now) - page.toldAt; // of this machine's clock
  const node = el("span", { class: "running-time", "data-since": Date.parse(iso) - ahead });
  show(node);
  if (ticking === null) ticking = setInterval(tick, 1000);
  return node;
}

function tick() {
  for (const node of document.querySelectorAll(".running-time")) show(node);
}

/* In whole seconds, as the next ones are at hand. */
function show(node) {
  const seconds = Math.max(0, Math.floor((Date.now() - Number(node.dataset.since)) / 1000));
  node.textContent = seconds < 10 ? seconds + "\u202fs" : duration(seconds * 1000);
}
