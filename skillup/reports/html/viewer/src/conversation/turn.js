/* One turn: what the user said, everything the agent did until it answered, and what was made of it. */
import { item as skItem } from "./turn.js";
import { captureKey, captures as skCaptures, message } from "./captures.js";
import { checks as skChecks } from "./checks.js";
import { copyable, error, rawLinks } from "./error.js";
import { tool } from "./tool.js";
import { el, fold } from "../dom.js";
import { cost, duration, known, score, usageText } from "../format.js";
import { trialAddress } from "../route.js";
import { status as skStatus, turnMark as skTurnMark } from "../table/rows.js";
import { changes } from "../text/diff.js";
import { answerBlock } from "../text/rendered.js";
import { holding, opensFor, textBlock } from "../text/text.js";

const MANY = 1000; // calls and messages, beyond which those out of sight are not laid out
const WHO = {
  case: ["User", null],
  simulator: ["Simulated user", "written by the simulated user"],
  follow_up: ["Follow-up", "sent because a check failed"],
  history: ["User", "placed, not run"],
};

/* `shared`: {detail, places (collectEvidence), root: () => element}. */
export function turn(turn, shared) {
  const mark = turnMark(turn);
  const number = turn.turn_number;
  return el(
    "article",
    {
      class: "turn turn-" + mark.status,
      "data-turn": number,
      "aria-label": "Turn " + number,
      tabindex: "-1",
    },
    el(
      "header",
      { class: "turn-head" },
      el(
        "h3",
        {},
        el(
          "a",
          { href: trialAddress(shared.detail.n, number), class: "jump", "data-turn": number },
          "Turn " + number,
        ),
      ),
      " ",
      el(
        "span",
        { class: "status status-" + mark.status },
        el("span", { class: "sign", "aria-hidden": "true" }, mark.sign),
        " ",
        mark.word,
      ),
      turn.passed_on ? el("span", { class: "tag" }, "passed on its " + turn.passed_on) : null,
      turn.held_by
        ? el("span", { class: "tag", title: turn.held_by }, "shared, held before the fork")
        : null,
      el("span", { class: "turn-facts" }, facts(turn)),
    ),
    el(
      "div",
      { class: "turn-body" },
      el(
        "div",
        { class: "said" },
        said(turn, shared),
        (turn.follow_ups || []).map((one, _, all) => followUp(one, shared, all)),
      ),
      el(
        "aside",
        { class: "judged", "aria-label": `Checks and captures of turn ${number}` },
        judged(turn, shared),
      ),
    ),
  );
}

/* A turn stands or falls by its gate and by its own checks, or those of the follow-up that it passed on. */
function turnMark(turn) {
  const checks = turn.checks || [];
  const saved = turn.passed_on && (turn.follow_ups || []).find((one) => one.label === turn.passed_on);
  const deciding = saved
    ? [...checks.filter((check) => check.role === "post_condition"), ...saved.checks]
    : checks;
  if (turn.status === "completed" && turn.unjudged)
    return { sign: "·", word: turn.given_up ? "held" : "held, not judged yet", status: "NOT_HELD" };
  if (turn.status === "completed" && deciding.some((check) => check.moot === "skips the rest"))
    return { sign: "○", word: "skips the rest", status: "SKIP" };
  return skTurnMark({ status: turn.status, ok: deciding.every((check) => check.passed || check.moot) });
}
export const markOfTurn = turnMark;

function facts(turn) {
  return [
    known(turn.score) && turn.status === "completed" ? "score " + score(turn.score) : null,
    turn.duration_ms ? duration(turn.duration_ms) : null,
    usageText(turn.usage) || null,
    known(turn.cost_usd) ? cost(turn.cost_usd) : null,
    turn.model || null,
  ]
    .filter(Boolean)
    .join(" · ");
}

function said(turn, shared) {
  const [who, aside] = WHO[turn.source] || [turn.source, null];
  const label = turn.label ? turn.label[0].toUpperCase() + turn.label.slice(1) : who;
  return [
    speech(
      "user " + turn.source,
      label,
      turn.status === "skipped" ? "not sent" : aside,
      message(shared.detail, turn),
    ),
    turn.status === "skipped"
      ? el("p", { class: "notice" }, "Skipped", turn.reason ? ": " + turn.reason : "")
      : null,
    agent(turn, shared),
    turn.changes ? changes(turn.changes, rangesOf(turn, shared)("changes")) : null,
    error(turn.error, "Turn could not be held", turn.raw),
    turn.status === "failed" && turn.reason ? el("p", { class: "notice" }, turn.reason) : null,
  ];
}

/* A message: who says it, and what. */
export const speech = (name, who, aside, ...inside) =>
  el(
    "div",
    { class: "speech " + name },
    el("div", { class: "who" }, who, aside ? el("span", { class: "aside" }, " " + aside) : null),
    inside,
  );

function agent(turn, shared) {
  const ranges = rangesOf(turn, shared);
  const items = turn.items || [];
  const last = items
    .map((item) => item.type === "message" && !item.agent && item.text === turn.response)
    .lastIndexOf(true);
  const parts = items.map((item, at) =>
    at === last
      ? answerBlock(turn.response, { ranges: [...ranges(null), ...ranges(at)], name: "prose answer" })
      : skItem(item, ranges(at)),
  );
  if (last < 0 && turn.response)
    parts.push(answerBlock(turn.response, { ranges: ranges(null), name: "prose answer" }));
  if (!parts.length) {
    if (turn.status === "skipped") return null;
    parts.push(el("p", { class: "aside" }, turn.error ? "No answer." : "The agent said nothing."));
  }
  return speech(parts.length > MANY ? "agent many" : "agent", "Agent", null, parts);
}

/* Something that was said or done within a turn. */
export function item(item, ranges) {
  if (item.type === "tool") return tool(item, { ranges });
  if (item.type === "reasoning") {
    return fold(
      { class: "reasoning", ...holding(ranges) },
      [
        el("span", { class: "label" }, "reasoning"),
        " ",
        el("span", { class: "aside" }, (item.text || "").slice(0, 160).replace(/\s+/g, " ")),
      ],
      () => textBlock(item.text, { ranges }),
      opensFor(ranges),
    );
  }
  if (item.type === "notice") return el("p", { class: "notice small-notice" }, item.text);
  const block = answerBlock(item.text, { ranges, name: "prose" });
  return item.agent
    ? el("div", { class: "sub-agent" }, el("span", { class: "tag" }, "sub-agent ", item.agent), block)
    : block;
}

/* Marks in the answer (item null) or in an item of the turn; captures may be out of a follow-up. */
function rangesOf(turn, shared) {
  const places = shared.places.get(turn) || [];
  const holder = shared.detail.turns.find((one) => one.turn_number === turn.turn_number) || turn;
  const mine = known(turn.follow_up) ? turn.follow_up : null;
  const captures = (holder.captures || [])
    .filter((capture) => capture.where && (capture.where.follow_up ?? null) === mine)
    .map((capture) => ({
      start: capture.where.start,
      end: capture.where.end,
      class: "captured",
      marks: [captureKey(turn.turn_number, capture.variable)],
      title: `captured as <<${capture.variable}>>`,
    }));
  const differing = (mine === null && shared.differing && shared.differing.get(turn.turn_number)) || [];
  return (item) =>
    item === "changes"
      ? places.filter((one) => one.in === "changes")
      : item === null
      ? [...places.filter((one) => one.in === "response"), ...captures, ...differing]
      : places.filter((one) => one.in === "item" && one.item === item);
}

/* The session's id is said once, at the head; here only where a turn was held in another. */
function session(turn, detail) {
  const other = turn.session_id && turn.session_id !== detail.session_id;
  if (!other && turn.session_verified !== false) {
    return turn.session_verified
      ? el("span", { title: "The session still held the earlier turns" }, "session verified")
      : null;
  }
  return el(
    "span",
    {},
    "session ",
    other ? copyable(turn.session_id, "session id") : null,
    turn.session_verified === false
      ? el("strong", {}, " not verified")
      : turn.session_verified
        ? " verified"
        : null,
  );
}

function judged(turn, shared) {
  return [
    skChecks(turn.checks, "Checks", shared.root),
    skCaptures(shared.detail, turn, shared.root),
    (turn.notes || []).map((note) => el("p", { class: "note" }, note)),
    el("footer", { class: "turn-foot" }, session(turn, shared.detail), rawLinks(turn.raw)),
  ];
}

const isBelow = (one, turn) =>
  one !== turn &&
  one.asked_by.length > turn.asked_by.length &&
  turn.asked_by.every((place, at) => one.asked_by[at] === place);

/* By its own checks: one of its own follow-ups may have passed in its stead, which is said beside it. */
function followUp(turn, shared, all) {
  const own = turn.passed && (turn.checks || []).every((check) => check.passed);
  const status = own ? "PASS" : turn.status === "error" ? "ERROR" : "FAIL";
  const saved = turn.passed && !own ? all.find((one) => isBelow(one, turn) && one.passed) : null;
  return el(
    "section",
    { class: "follow-up", "aria-label": turn.label || "follow-up" },
    el(
      "div",
      { class: "turn-facts" },
      skStatus(status),
      saved ? [" ", el("span", { class: "tag" }, "then passed on the " + saved.label)] : null,
      " ",
      facts(turn),
    ),
    said(turn, shared),
    judged(turn, shared),
  );
}
