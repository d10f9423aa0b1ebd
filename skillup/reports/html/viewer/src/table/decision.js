/* What `--until-decided` came to: of each case beside its rate, and of all of them below the bar. */
import { el } from "../dom.js";
import { asSentence, count, plural } from "../format.js";

const KIND = {
  above: ["surely above ", "PASS"],
  below: ["surely below ", "FAIL"],
  undecided: ["undecided at ", "SKIP"],
};
const WAITING = ["not decided yet at ", "SKIP"];

/* A threshold may have a part of a percent, as 0.995. */
const level = (share) => `${Math.round(share * 1000) / 10}\u202f%`;

/* `one`: a case of the analysis; null if there was nothing to decide. `before`: what stands first. */
export function decision(one, before = null) {
  if (!one || !one.decision || !KIND[one.decision.verdict]) return null;
  const { verdict, threshold, error_rate: chance, trials, saved } = one.decision;
  const [word, status] = verdict === "undecided" && one.not_run ? WAITING : KIND[verdict];
  return el(
    "span",
    {
      class: "decision",
      title: `Of a case at ${level(threshold)} itself it would be said wrongly at most in ${level(chance)} of all runs`,
    },
    before,
    el("span", { class: "status-" + status }, word + level(threshold)),
    " ",
    el(
      "span",
      { class: "aside" },
      "after " + plural(trials, "trial"),
      saved ? `, ${count(saved)} not needed` : null,
    ),
  );
}

/* "Decided after 3 to 22 trials; …", and that such rates are biased. */
export function deciding(index) {
  const lines = index.deciding || [];
  if (!lines.length) return null;
  return el(
    "p",
    { id: "deciding" },
    lines.map((line, at) => (at ? " " : "") + asSentence(line)),
  );
}
