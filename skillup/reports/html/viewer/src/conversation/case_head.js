/* The head of a conversation: which trial it is, its verdict, and what it took. */
import { reason as skReason } from "./case_head.js";
import { attemptsTold } from "./attempts.js";
import { copyable, error, lastRaw, rawLinks } from "./error.js";
import { failedPart, markOfEnd } from "./evidence.js";
import { family } from "./fork_tree.js";
import { failingNeighbours } from "./reading_place.js";
import { compareLinks, trialLinks } from "./trials.js";
import { markOfTurn } from "./turn.js";
import { el, fold } from "../dom.js";
import { cost, duration, known, plural, score, time, usageText } from "../format.js";
import { address, trialAddress } from "../route.js";
import { page } from "../state.js";
import { engineText } from "../summary/totals.js";
import { status as skStatus } from "../table/rows.js";

export function caseHead(detail, row) {
  const grade = detail.grade || {};
  const status = grade.status || (row && row.status) || "NOT_HELD";
  return el(
    "header",
    { class: "case-head" },
    el(
      "p",
      { class: "way" },
      el("a", { href: page.tableAddress || address("") }, "← All conversations"),
      neighbours(detail.n),
    ),
    el(
      "h1",
      {},
      detail.case_id,
      " ",
      detail.title ? el("span", { class: "case-title" }, detail.title) : null,
    ),
    el(
      "p",
      { class: "verdict" },
      skStatus(status),
      " ",
      known(grade.score) && /PASS|FAIL/.test(status)
        ? el("span", { class: "score" }, "score " + score(grade.score))
        : null,
      " ",
      grade.reason ? el("span", { class: "verdict-reason" }, skReason(detail)) : null,
    ),
    (grade.warnings || []).map((text) => el("p", { class: "notice" }, text)),
    detail.skipped ? el("p", { class: "notice" }, "Not held: ", detail.skipped) : null,
    error(detail.error, "The trial could not be held", lastRaw(detail)),
    attemptsTold(detail),
    el("div", { class: "siblings" }, trialLinks(detail.n), compareLinks(detail.n)),
    facts(detail, grade),
    family(detail),
    turnLinks(detail),
  );
}

function neighbours(n) {
  const { next, previous } = failingNeighbours(n);
  if (!next && !previous) return null;
  const link = (row, text, key) =>
    row
      ? el("a", { href: trialAddress(row.n), title: row.case_id, "aria-keyshortcuts": key }, text)
      : null;
  return el(
    "span",
    { class: "neighbours" },
    link(previous, "↑ previous failing case", "p"),
    previous && next ? " · " : null,
    link(next, "↓ next failing case", "n"),
  );
}

function facts(detail, grade) {
  const engine = detail.engine || {};
  const pair = (label, ...inside) =>
    inside.some(Boolean) ? el("div", {}, el("dt", {}, label), el("dd", {}, inside)) : null;
  const spent = (part) =>
    part &&
    [cost(part.cost_usd), usageText(part.usage)].filter((text) => text && text !== "–").join(", ");
  const judging = grade.judging;
  const user = grade.simulator;
  return el(
    "dl",
    { class: "facts" },
    pair("suite", detail.suite),
    pair(
      "engine",
      engine.profile ? engineText(engine) : null,
      [engine.permission, engine.isolation].filter(Boolean).length
        ? el(
            "span",
            { class: "aside" },
            ` ${[engine.permission, engine.isolation].filter(Boolean).join(", ")}`,
          )
        : null,
    ),
    pair("variant", detail.variant === "without_skill" ? "without the skill" : null),
    pair(
      "trial",
      detail.trial > 1 || detail.attempt > 1
        ? `${detail.trial}${detail.attempt > 1 ? `, attempt ${detail.attempt}` : ""}`
        : null,
    ),
    pair(
      "mode",
      grade.execution_mode === "single_shot" ? "single shot: all turns were sent as one message" : null,
    ),
    pair(
      "time",
      known(grade.duration_ms) ? duration(grade.duration_ms) : null,
      detail.started_at ? el("span", { class: "aside" }, " from " + time(detail.started_at)) : null,
    ),
    pair("agent", spent(grade)),
    pair(
      "judges",
      judging && judging.calls
        ? [
            plural(judging.calls, "request"),
            judging.cached_calls ? ` (${judging.cached_calls} from the cache)` : null,
            spent(judging) ? ", " + spent(judging) : null,
            (judging.models || []).length ? ", " + judging.models.join(", ") : null,
          ]
        : null,
    ),
    pair(
      "simulated user",
      user
        ? [
            plural(user.messages, "message"),
            spent(user) ? ", " + spent(user) : null,
            (user.models || []).length ? ", " + user.models.join(", ") : null,
          ]
        : null,
    ),
    pair("session", detail.session_id ? copyable(detail.session_id, "session id") : null),
    pair(
      "skills",
      (detail.skills || []).length
        ? detail.skills.map((skill, at) => [
            at ? ", " : null,
            el(
              "span",
              { title: "sha256 " + skill.sha256 },
              skill.name,
              skill.role === "distractor" ? el("span", { class: "aside" }, " (distractor)") : null,
            ),
          ])
        : null,
    ),
    pair(
      "variables",
      Object.keys(detail.variables || {}).length
        ? fold({}, plural(Object.keys(detail.variables).length, "variable"), () =>
            el(
              "ul",
              { class: "plain" },
              Object.entries(detail.variables).map(([name, value]) =>
                el("li", {}, el("code", {}, `<<${name}>>`), " = ", el("span", {}, String(value))),
              ),
            ),
          )
        : null,
    ),
    pair(
      "notes",
      (detail.notes || []).length ? detail.notes.map((note) => el("p", { class: "note" }, note)) : null,
    ),
    pair("files", rawLinks(detail.raw)),
  );
}

/* The reason for the verdict, as a link to the check that decided. */
export function reason(detail) {
  const part = /FAIL|ERROR|SKIP/.test((detail.grade || {}).status) ? failedPart(detail) : null;
  const { reason } = detail.grade;
  if (part === null) return reason;
  return el(
    "a",
    {
      href: trialAddress(detail.n, part),
      class: "jump to-check",
      "data-turn": part,
      title: "Show the check",
    },
    reason,
  );
}

function turnLinks(detail) {
  const end = markOfEnd(detail);
  const chip = (part, mark, name, title) =>
    el(
      "a",
      {
        href: trialAddress(detail.n, part),
        class: "jump status-" + mark.status,
        "data-turn": part,
        title,
      },
      el("span", { class: "sign", "aria-hidden": "true" }, mark.sign),
      " ",
      name,
      el("span", { class: "visually-hidden" }, ", " + mark.word),
    );
  if (detail.turns.length + (end ? 1 : 0) < 2) return null;
  return el(
    "nav",
    { class: "turn-links", "aria-label": "Turns" },
    detail.turns.map((turn) =>
      chip(
        turn.turn_number,
        markOfTurn(turn),
        String(turn.turn_number),
        (turn.content || "").slice(0, 120),
      ),
    ),
    end ? chip("end", end, "end", "Checks of the whole conversation") : null,
  );
}
