/* The line above every page: what run this is, and the few switches. */
import { button, el, replace } from "../dom.js";
import { time } from "../format.js";
import { toggleHelp } from "./keys.js";
import { print } from "./print.js";
import { address } from "../route.js";
import { page } from "../state.js";
import { themeButton } from "./theme.js";

export function showTop() {
  const { index, mode } = page;
  const run = index && index.run;
  const home = el("a", { class: "brand", href: mode === "view" ? "#/" : address("") }, "skillup");
  const trail = run
    ? el(
        "span",
        { class: "trail" },
        mode === "view" ? [el("a", { href: "#/" }, "All runs"), " / "] : null,
        el("a", { href: address(""), class: "run-id", title: run.path || "" }, run.run_id),
      )
    : null;
  replace(
    document.getElementById("top"),
    el("nav", { "aria-label": "Report" }, home, trail),
    el("span", { class: "top-facts" }, run ? facts(run) : null),
    el(
      "span",
      { class: "switches" },
      index ? button("Print", () => print(), { class: "quiet print" }) : null,
      button("Keys", () => toggleHelp(), { class: "quiet", "aria-label": "Show the keys" }),
      themeButton(),
    ),
  );
}

function facts(run) {
  const live = run.running ? el("span", { class: "live", id: "live" }, "running") : null;
  return [live, el("time", { datetime: run.started_at }, time(run.started_at))];
}
