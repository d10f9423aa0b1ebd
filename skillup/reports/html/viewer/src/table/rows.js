/* The lines of the table: a case with all its trials, a case held once, a trial. */
import { status as skStatus } from "./rows.js";
import { button, el } from "../dom.js";
import { cost, duration, known as skKnown, plural, score, time, tokenText } from "../format.js";
import { timeSince } from "../live/running_time.js";
import { go, trialAddress } from "../route.js";
import { STATUS } from "../state.js";
import { decision } from "./decision.js";
import { firstFailure, mean as skMean } from "./groups.js";

const DOT = { completed: "●", failed: "✗", skipped: "○", error: "!" };
const WORD = { completed: "ok", failed: "failed", skipped: "skipped", error: "error" };
const MOST_DOTS = 24;
const MOST_REASONS = 3;

export const statusSign = (status) => el("span", { class: "sign", "aria-hidden": "true" }, STATUS[status].sign);

export const status = (status) =>
  el("span", { class: "status status-" + status }, statusSign(status), " ", STATUS[status].word);

/* A turn's sign: "failed" too where it was held and its checks failed. */
export function turnMark(turn) {
  if (turn.status === "completed" && turn.unjudged)
    return { sign: "·", word: "held, not judged yet", status: "NOT_HELD" };
  const status = turn.status === "completed" && turn.ok === false ? "failed" : turn.status;
  return {
    sign: DOT[status] || "·",
    word: WORD[status] || status,
    status: { completed: "PASS", failed: "FAIL", skipped: "SKIP", error: "ERROR" }[status] || "NOT_HELD",
  };
}

/* A sign for each turn; and one at the end, where a check of the whole conversation failed. */
function dots(row) {
  const marks = (row.turns || []).map(turnMark);
  const words = marks.map((mark, at) => `turn ${at + 1} ${mark.word}`);
  const end = row.end === false;
  if (end) words.push("a check of the whole conversation failed");
  const text = words.join(", ");
  return el(
    "span",
    { class: "dots", role: "img", "aria-label": text || "no turns", title: text },
    marks
      .slice(0, MOST_DOTS)
      .map((mark) => el("span", { class: "dot status-" + mark.status }, mark.sign)),
    marks.length > MOST_DOTS ? `+${marks.length - MOST_DOTS}` : null,
    end ? el("span", { class: "dot end status-FAIL" }, "✗ end") : null,
  );
}

/* "3/5", and a sign for each trial that opens it. */
function trialDots(rows) {
  const passed = rows.filter((row) => row.status === "PASS").length;
  const held = passed + rows.filter((row) => row.status === "FAIL").length;
  return el(
    "span",
    { class: "trial-dots" },
    el("span", { class: "strong", title: `${passed} of ${held} passed` }, held ? `${passed}/${held}` : "–"),
    el(
      "span",
      { class: "dots" },
      rows.slice(0, MOST_DOTS).map((row) => {
        const words = `trial ${row.trial}: ${STATUS[row.status].word}`;
        return el(
          "a",
          {
            href: trialAddress(row.n),
            "data-to": row.n,
            class: "dot status-" + row.status,
            tabindex: "-1", // the trials below, unfolded, are for the keyboard
            title: words,
            "aria-label": words,
          },
          STATUS[row.status].sign,
        );
      }),
      rows.length > MOST_DOTS ? `+${rows.length - MOST_DOTS}` : null,
    ),
  );
}

/* "turn 3 ✗2, end ✗1" */
function where(group) {
  const counts = new Map();
  for (const failure of group.rows.map(firstFailure)) {
    if (!failure || failure.at === null) continue;
    const place = failure.at === "end" ? "end" : "turn " + failure.at;
    const key = place + " " + (failure.error ? "!" : "✗");
    counts.set(key, (counts.get(key) || 0) + 1);
  }
  if (!counts.size) return null;
  const text = [...counts].map(([key, number]) => key + number).join(", ");
  return el("span", { class: "where", title: "Where trials first failed" }, text);
}

/* Why its trials failed, each reason once. */
function reasons(rows) {
  const counts = new Map();
  for (const row of rows) {
    if (row.status === "PASS" || !row.reason) continue;
    if (rows.length > 1 && row.status !== "FAIL" && row.status !== "ERROR") continue;
    counts.set(row.reason, (counts.get(row.reason) || 0) + 1);
  }
  const sorted = [...counts].sort((a, b) => b[1] - a[1]);
  const more = sorted.length - MOST_REASONS;
  return [
    sorted
      .slice(0, MOST_REASONS)
      .map(([reason, number]) =>
        el(
          "span",
          { class: "reason" },
          rows.length > 1
            ? el("span", { class: "reason-count" }, `${number} of ${rows.length} `)
            : null,
          reason,
        ),
      ),
    more > 0 ? el("span", { class: "reason" }, `and ${plural(more, "other reason")}`) : null,
  ];
}

function cell(key, attributes, ...inside) {
  const names = ["column-" + key, attributes.class].filter(Boolean).join(" ");
  return el("td", { ...attributes, class: names }, inside);
}

/* The cells after the case, of those columns that are shown; a case's numbers are its trials' means. */
function numbers(rows, about, turns, engine) {
  const title = rows.length > 1 ? `mean of ${rows.length} trials` : null;
  const number = (key, text) => cell(key, { class: "number", title }, text);
  const make = {
    turns: () => cell("turns", {}, turns),
    engine: () => cell("engine", {}, engine),
    score: () => number("score", score(skMean(rows, (row) => row.score))),
    time: () => timeOf(rows, number),
    tokens: () => number("tokens", tokenText(skMean(rows, (row) => row.tokens))),
    cost: () => number("cost", cost(skMean(rows, (row) => row.cost_usd))),
  };
  return about.columns.filter((key) => make[key]).map((key) => make[key]());
}

/* Of trials of which none is over, how long the first of them has gone on. */
function timeOf(rows, number) {
  const over = skMean(rows, (row) => row.duration_ms);
  const since = rows.map((row) => row.started_at).filter(Boolean).sort()[0];
  if (skKnown(over) || !since) return number("time", duration(over));
  return cell("time", { class: "number", title: "so far" }, timeSince(since));
}

const link = (row, text, name) =>
  el("a", { href: trialAddress(row.n), "data-to": row.n, class: name }, text);

/* How long it has failed, as far as past runs tell. */
function failingFor(group, about) {
  const known = about.history.get(group.key);
  const since = known && known.failing_since;
  if (!since || !/FAIL|FLAKY/.test(group.status)) return null;
  const day = time(since.started_at);
  if (since.before)
    return el(
      "span",
      { class: "tag", title: `since ${day}: before, ${since.before[0]} of ${since.before[1]} passed` },
      "passes less often",
    );
  const text = since.runs > 1 ? `failing for ${since.runs} runs` : "new";
  return el("span", { class: "tag", title: "failing since " + day }, text);
}

/* `about`: {columns, suites, several, history, tested, toggle}; `tested`: what the analysis says. */
export function groupRow(group, about) {
  const [first] = group.rows;
  const needed = group.rows.filter((row) => row.status !== "NOT_NEEDED");
  const many = group.rows.length > 1;
  const aside = [
    about.suites ? first.suite : null,
    first.variant === "without_skill" ? "without the skill" : null,
    first.branch_of ? "branch of " + first.branch_of : null,
  ].filter(Boolean);
  const onClick = (event) => {
    if (event.target.closest("a, button") || String(getSelection())) return;
    if (many) about.toggle(group.key);
    else go(trialAddress(first.n));
  };
  return el(
    "tr",
    {
      "data-n": group.telling.n,
      "data-group": group.at,
      class: (many ? "row group" : "row") + " status-row-" + group.status,
      on: { click: onClick },
    },
    cell("status", {}, skStatus(group.status)),
    el(
      "th",
      { scope: "row", class: "column-case" },
      many
        ? button("▸", () => about.toggle(group.key), {
            class: "toggle",
            "aria-expanded": "false",
            "aria-label": "Trials of " + first.case_id,
          })
        : null,
      link(group.telling, first.case_id, "case-link"),
      first.title ? el("span", { class: "case-title" }, first.title) : null,
      aside.length ? el("span", { class: "aside" }, aside.join(" · ")) : null,
      failingFor(group, about),
      (first.tags || []).map((tag) => el("span", { class: "tag" }, tag)),
      reasons(needed),
    ),
    numbers(
      needed,
      about,
      many ? [trialDots(needed), decision(about.tested.get(group.key)), where(group)] : dots(first),
      first.engine,
    ),
  );
}

/* A trial, below its case; its reason only where the case's trials have different ones. */
export function trialRow(row, about, reason) {
  const onClick = (event) => {
    if (!event.target.closest("a") && !String(getSelection())) go(trialAddress(row.n));
  };
  const open = link(row, "trial " + row.trial, "trial-name");
  open.setAttribute("aria-label", `${row.case_id}, trial ${row.trial}`);
  return el(
    "tr",
    {
      "data-n": row.n,
      "data-group": about.at,
      class: "row trial status-row-" + row.status,
      on: { click: onClick },
    },
    cell("status", {}, skStatus(row.status)),
    el(
      "th",
      { scope: "row", class: "column-case" },
      open,
      reason && row.reason && row.status !== "PASS"
        ? el("span", { class: "reason" }, row.reason)
        : null,
    ),
    numbers([row], about, dots(row), ""),
  );
}
