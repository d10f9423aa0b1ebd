/* Earlier attempts at a trial: how each ended, said at its top, and their conversations below its own. */
import { conversation as skConversation } from "./case.js";
import { error, rawLinks } from "./error.js";
import { button, el, fold as skFold, unfoldAround } from "../dom.js";
import { status } from "../table/rows.js";
import { calm } from "../text/text.js";

/* What is said at the top; null: this was the first attempt. */
export function attemptsTold(detail) {
  const before = detail.attempts || [];
  if (!before.length) return null;
  return el(
    "section",
    { class: "notice attempts", "aria-label": "Earlier attempts" },
    el("p", {}, `This is attempt ${detail.attempt}. `),
    before.map((one) =>
      el(
        "p",
        {},
        `Attempt ${one.attempt} ended as `,
        one.error
          ? [status("ERROR"), " ", el("code", {}, one.error.kind), `: ${one.error.message} `]
          : `not to be counted${one.reason ? ": " + one.reason : ""} `,
        one.turns.length
          ? button("Show its conversation", () => show(one.attempt), { class: "quiet show-evidence" })
          : null,
        " ",
        rawLinks(one.raw),
      ),
    ),
  );
}

function show(attempt) {
  const fold = document.querySelector(`.attempt[data-attempt="${Number(attempt)}"]`);
  if (!fold) return;
  unfoldAround(fold);
  fold.querySelector("summary").focus({ preventScroll: true });
  fold.scrollIntoView({ block: "start", behavior: calm() ? "auto" : "smooth" });
}

/* Their conversations, folded, for what is below the trial's own. */
export const attempts = (detail) =>
  (detail.attempts || [])
    .filter((one) => one.turns.length)
    .map((one) =>
      skFold(
        { class: "attempt", "data-attempt": one.attempt },
        `Attempt ${one.attempt}, which was not counted`,
        () => conversation(detail, one),
      ),
    );

function conversation(detail, one) {
  for (const turn of one.turns) Object.assign(turn, { unjudged: true, given_up: true });
  const whatWasSaid = { turns: one.turns, conversation_checks: [], simulated_end: null };
  const root = skConversation({ ...detail, ...whatWasSaid });
  // It is no place of the trial: keys and links that lead to turns mean those of the one that counts.
  root.className = "attempt-turns";
  for (const turn of root.querySelectorAll(".turn")) {
    turn.removeAttribute("data-turn");
    turn.classList.add("of-attempt");
  }
  for (const link of root.querySelectorAll("a.jump")) link.replaceWith(...link.childNodes);
  const whole = one.error && !one.turns.some((turn) => turn.error);
  return [whole ? error(one.error, "The attempt could not be held", one.raw) : null, root];
}
