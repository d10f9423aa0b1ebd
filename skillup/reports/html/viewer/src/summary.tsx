/* The first page: one honest sentence, then the cases, then what it rests on. */
import type { ComponentChildren } from "preact";
import type { CaseReliability, Difference, Engine, EngineInfo, Index } from "../dist/types";
import type { Rate, Row, Uplift } from "../dist/types";
import { Decision } from "./table/cells";
import { firstFailures, trend } from "./charts";
import { AgainstChoice, NightsView, SidesView } from "./compare";
import { Aside, Button, Fold, Sign, Table, type Cell } from "./dom";
import { asSentence, cost, count, duration, interval, known, mean } from "./text/format";
import { percent, plural, points, score, signed, tokenText, tokens } from "./text/format";
import { NO_FILTER, STATUS, caseKey, caseOf, hasVerdict, isBaseline } from "./state";
import { setFilter, trialAddress } from "./state";
import { tally } from "./table/filter";
import { CaseTable } from "./table/table";

/* The mean of the cases' pass rates: each counts the same, however many verdicts it has; on several
   engines it is one case. Said where trials are more than cases. */
function meanOfCases(verdicts: Row[]): string {
  const by = new Map<string, number[]>();
  for (const row of verdicts)
    by.set(caseOf(row), [...(by.get(caseOf(row)) || []), row.status === "PASS" ? 1 : 0]);
  if (by.size < 2 || by.size === verdicts.length) return "";
  const rate = mean([...by.values()], (passes) => mean(passes, (one) => one));
  return `; mean of ${count(by.size)} cases ${percent(rate)}`;
}

/* ", 95 % interval 69–90 %", of the analysis: over cases, with their mean, where cases have several
   trials. */
function intervalText({ analysis }: Index, verdicts: Row[]): string {
  const overall = analysis?.overall;
  if (overall?.judged !== verdicts.length) return "";
  const level = `, ${Math.round(analysis!.confidence * 100)}\u202f% interval `;
  return meanOfCases(verdicts) + level + interval(overall.low, overall.high);
}

function rest(counts: Record<string, number>, words: Record<string, string>): string[] {
  const named = { SKIP: "skipped", RUNNING: "running", WAITING: "waiting", NOT_RUN: "not run" };
  return Object.entries({ ...words, ...named })
    .filter(([status]) => counts[status])
    .map(([status, word]) => `${count(counts[status])} ${word}`);
}

/* "41 of 50 trials passed (82 %, 95 % interval 69–90 %); 2 ended in an error (no verdict)." */
export function sentence(index: Index): string {
  const rows = index.rows.filter((row) => !isBaseline(row));
  const counts = tally(rows);
  const verdicts = rows.filter(hasVerdict);
  const passed = counts.PASS!;
  const skill = rows.length < index.rows.length ? " with the skill" : "";
  const rate = percent(passed / verdicts.length);
  const first = verdicts.length
    ? `${count(passed)} of ${plural(verdicts.length, "trial")} passed${skill} ` +
      `(${rate}${intervalText(index, verdicts)})`
    : "No trial has a verdict";
  const parts = [first, ...rest(counts, { ERROR: "ended in an error (no verdict)" })];
  if (index.not_needed?.length) parts.push(`${count(index.not_needed.length)} not needed`);
  return parts.join("; ") + ".";
}

/* "Without the skill 27 of 48 passed (56 %); 1 error." Nothing where there is no baseline. */
function Baseline({ index }: { index: Index }) {
  const rows = index.rows.filter(isBaseline);
  if (!rows.length) return null;
  const counts = tally(rows);
  const verdicts = rows.filter(hasVerdict);
  const rate = percent(counts.PASS! / verdicts.length) + meanOfCases(verdicts);
  const first = verdicts.length
    ? `${count(counts.PASS)} of ${count(verdicts.length)} passed (${rate})`
    : "no trial has a verdict";
  const parts = [first, ...rest(counts, { ERROR: counts.ERROR === 1 ? "error" : "errors" })];
  return <p id="baseline">Without the skill {parts.join("; ")}.</p>;
}

/* A titled part of the first page; null: there is nothing to say. */
type Part = { id: string; title: string; inside: ComponentChildren } | null;

const panel = (part: Part) =>
  part && (
    <section class="panel" id={part.id} aria-labelledby={`${part.id}-title`}>
      <h2 id={`${part.id}-title`}>{part.title}</h2>
      {part.inside}
    </section>
  );

export function FirstPage({ index }: { index: Index }) {
  const lower = [flaky, firstFailures, trend, engines, triggering];
  const parts = lower.map((part) => panel(part(index))).filter(Boolean);
  return (
    <>
      <section class="summary" aria-labelledby="headline">
        <h1 id="headline">{sentence(index)}</h1>
        <p id="ran" class="aside">
          {ran(index)}
        </p>
        <Baseline index={index} />
        <Bar index={index} />
        {index.deciding?.length ? (
          <p id="deciding">{index.deciding.map(asSentence).join(" ")}</p>
        ) : null}
        <StoppedNotice index={index} />
        {(index.warnings || []).map((text) => (
          <p class="notice warning">{text}</p>
        ))}
      </section>
      {panel(uplift(index))}
      <AgainstChoice />
      {index.sides ? <SidesView sides={index.sides} /> : null}
      {index.compared.length ? <NightsView lines={index.compared} /> : null}
      <CaseTable index={index} />
      {panel(totals(index))}
      {parts.length ? <div class="summary-parts">{parts}</div> : null}
    </>
  );
}

function StoppedNotice({ index: { run } }: { index: Index }) {
  if (!run.stopped && (run.finished || run.running)) return null;
  return (
    <p class="notice" id="stopped">
      {run.stopped ? (
        <>
          <strong>Stopped early: </strong>
          {run.stopped.message} <Aside>({run.stopped.kind})</Aside>
        </>
      ) : (
        <>
          This run did not finish. <code>skillup run --resume {run.path || run.run_id}</code>{" "}
          completes it.
        </>
      )}
    </p>
  );
}

/* The shares of the statuses as one bar, and below it what each part is; a click leaves these in
   the table. */
function Bar({ index }: { index: Index }) {
  const rows = index.rows.filter((row) => !isBaseline(row));
  const parts = Object.entries(tally(rows)).filter(([, number]) => number > 0);
  const variant = rows.length < index.rows.length ? "with_skill" : null;
  const show = (status: string) => setFilter({ ...NO_FILTER, status, variant });
  return (
    <>
      <div class="bar" aria-hidden="true">
        {parts.map(([status, number]) =>
          status === "NOT_NEEDED" ? null : (
            <span class={`bar-part status-${status}`} style={{ flexGrow: number }} />
          ),
        )}
      </div>
      <div class="bar-legend">
        {parts.map(([status, number]) => (
          <Button class={`bar-name status-${status}`} onClick={() => show(status)}>
            <Sign status={status} /> {count(number)} {STATUS[status]!.word}
          </Button>
        ))}
      </div>
    </>
  );
}

/* "claude (claude_code 2.1.0, sonnet)" */
export function engineText(engine: Engine | EngineInfo): string {
  const adapter = [engine.adapter, engine.version].filter(Boolean).join(" ");
  const inside = [adapter, engine.model].filter(Boolean).join(", ");
  return engine.profile + (inside && inside !== engine.profile ? ` (${inside})` : "");
}

/* "suite notes · skill log-keeper · claude (claude_code 2.1.0, sonnet)" */
function ran({ run }: Index): string {
  const named = (word: string, names: string[] | undefined) =>
    names?.length ? `${word}${names.length > 1 ? "s" : ""} ${names.join(", ")}` : "";
  const parts = [named("suite", run.suites), named("skill", run.skills)];
  return [...parts, ...(run.engines || []).map(engineText)].filter(Boolean).join(" · ");
}

/* Money, tokens and time: the agent's, the judges' and the simulated user's apart. */
function totals({ summary, rows, run }: Index): Part {
  if (!summary) return null;
  const { judging } = summary;
  const users = rows.map((row) => row.simulator).filter((one) => known(one));
  const by = (models: string[] | undefined, word: string) =>
    models?.length ? ` ${word} ${models.join(", ")}` : "";
  const line = (
    who: string, dollars: number | null, used: number | null, note: string, least = ""
  ): Cell[] => [
    { head: who },
    { number: known(dollars) ? least + cost(dollars) : cost(dollars) },
    { number: tokenText(used) },
    { text: note },
  ];
  const untold = (row: Row) => /^(PASS|FAIL|ERROR)$/.test(row.status) && !known(row.cost_usd);
  const least = rows.some(untold) ? "≥ " : "";
  const lines = [line("Agent", summary.cost_usd, tokens(summary.usage), "", least)];
  if (judging) {
    const note = plural(judging.calls, "request") + by(judging.models, "to");
    lines.push(line("Judges", judging.cost_usd, tokens(judging.usage), note));
  }
  if (users.length) {
    const sum = (values: Array<number | null>) =>
      values.every(known) ? values.reduce((a, b) => a + b, 0) : null;
    const models = [...new Set(users.flatMap((one) => one.models))];
    const note = plural(sum(users.map((one) => one.messages))!, "message") + by(models, "by");
    const [dollars, used] = [users.map((one) => one.cost_usd), users.map((one) => one.tokens)];
    lines.push(line("Simulated user", sum(dollars), sum(used), note));
  }
  const inside = (
    <>
      <Table
        heads={["", "cost", "tokens", ""]}
        rows={lines}
        caption="Cost and tokens, by spender"
      />
      <p class="aside">
        Time: {duration(summary.duration_ms)}
        {run.running ? " so far" : ""}.
      </p>
    </>
  );
  return { id: "totals", title: "What it took", inside };
}

const rateText = (rate: Rate | null) =>
  known(rate?.rate) ? `${percent(rate.rate)} (${rate.passed}/${rate.judged})` : "–";

/* What a trial takes, on average: the last columns of those tables. */
const TAKEN = [
  ["turns", "turns", score],
  ["tokens", "tokens", tokenText],
  ["cost", "cost_usd", cost],
  ["time", "duration_ms", duration],
] as const;
const TAKEN_HEADS = TAKEN.map(([head]) => head);

/* Each engine's rate and means, and each case by engine; a single one would say the headline
   again. */
function engines(index: Index): Part {
  const columns = index.analysis?.engines || [];
  if (columns.length < 2) return null;
  const suites = new Set(columns.map((column) => column.suite)).size > 1;
  const rows = columns.map((column): Cell[] => [
    { head: (suites ? `${column.suite}, ` : "") + column.engine },
    { text: `${rateText(column.rate)} ${interval(column.rate.low, column.rate.high)}` },
    { number: count(column.error) },
    { number: score(column.score) },
    ...TAKEN.map(([, key, text]) => ({ number: text(column[key]) })),
  ]);
  const caption = "Engines side by side; turns, tokens, cost and time are per trial";
  const heads = [suites ? "suite, engine" : "engine", "passed", "errors", "score", ...TAKEN_HEADS];
  const inside = <Table heads={heads} rows={rows} caption={caption} />;
  return { id: "engines", title: "Side by side", inside };
}

function differenceCell(difference: Difference | null, format: (value: number) => string): Cell {
  if (!difference) return { text: "–" };
  const { difference: by, with_skill, without_skill } = difference;
  return {
    number: (by > 0 ? "+" : by < 0 ? "−" : "±") + format(Math.abs(by)),
    title: `${format(with_skill)} with, ${format(without_skill)} without`,
  };
}

/* With against without the skill. Of a suite, rates are over those cases that its uplift is
   over. */
function uplift({ analysis }: Index): Part {
  const all = analysis?.uplift || [];
  if (!all.length) return null;
  const several = (key: "suite" | "engine") => new Set(all.map((one) => one[key])).size > 1;
  const [suites, engines] = [several("suite"), several("engine")];
  const rate = (one: Uplift, side: "with_skill" | "without_skill") => {
    if (one.case_id) return rateText(one[side]);
    const same = all.filter((other) => other.suite === one.suite && other.engine === one.engine);
    const cases = same.filter((other) => other.case_id && known(other.uplift));
    return percent(mean(cases, (other) => other[side].rate));
  };
  const points100 = (share: number) => signed(Math.round(share * 100));
  const between = (low: number, high: number) => `${points100(low)} to ${points100(high)}`;
  const chance = (p: number) => (p < 0.001 ? "<0.001" : String(Math.round(p * 1000) / 1000));
  const line = (one: Uplift): Cell[] => [
    {
      head: one.case_id
        ? [one.case_id, suites && one.suite, engines && one.engine].filter(Boolean).join(", ")
        : `${one.suite}, ${one.engine} (mean of ${plural(one.cases, "case")})`,
    },
    { number: rate(one, "with_skill") },
    { number: rate(one, "without_skill") },
    { number: points(one.uplift), class: "strong" },
    { number: known(one.low) && known(one.high) ? between(one.low, one.high) : "–" },
    { number: known(one.p) ? chance(one.p) : "–" },
    ...TAKEN.map(([, key, text]) => differenceCell(one[key], text)),
  ];
  const heads = ["", "with", "without", "uplift", "interval", "p", ...TAKEN_HEADS];
  const table = (some: Uplift[], caption: string) => (
    <Table heads={heads} rows={some.map(line)} caption={caption} />
  );
  const cases = all.filter((one) => one.case_id);
  const suitesOnly = all.filter((one) => !one.case_id);
  const inside = (
    <>
      {table(suitesOnly, "Pass rates with and without the skill")}
      {cases.length ? (
        <Fold
          summary={`By case (${cases.length})`}
          inside={() => table(cases, "The same, by case")}
        />
      ) : null}
    </>
  );
  return { id: "uplift", title: "What the skill adds", inside };
}

/* Cases whose trials disagree; not how the agent wavers without the skill. */
function flaky(index: Index): Part {
  const all = (index.analysis?.cases || []).filter((one) => one.flaky && !isBaseline(one));
  if (!all.length) return null;
  const inside = (
    <ul class="plain">
      {all.map((one) => (
        <li>
          <CaseLink index={index} of={one} /> <Aside>{one.engine}: </Aside>
          {`${one.rate.passed} of ${one.rate.judged} passed`}
          <Aside>{` (${interval(one.rate.low, one.rate.high)})`}</Aside>
          <Decision of={one} before="; " />
        </li>
      ))}
    </ul>
  );
  return { id: "flaky", title: `Flaky (${all.length})`, inside };
}

/* To the first trial of a case. */
function CaseLink({ index, of }: { index: Index; of: CaseReliability }) {
  const row = index.rows.find((one) => caseKey(one) === caseKey(of));
  return row ? <a href={trialAddress(row.n)}>{of.case_id}</a> : <span>{of.case_id}</span>;
}

/* Whether skills are used when they should be, and only then. */
function triggering({ analysis }: Index): Part {
  const all = analysis?.triggering || [];
  if (!all.length) return null;
  const heads = ["skill", "precision", "recall", "F1"];
  heads.push("used rightly", "missed", "used wrongly", "rightly not used");
  const rows = all.map((one): Cell[] => [
    { head: `${one.skill}, ${one.engine}` },
    { number: percent(one.precision) },
    { number: percent(one.recall) },
    { number: score(one.f1) },
    { number: count(one.used_rightly) },
    { number: count(one.not_used_wrongly) },
    { number: count(one.used_wrongly) },
    { number: count(one.not_used_rightly) },
  ]);
  const caption = "Whether each skill was used when it should be";
  const inside = <Table heads={heads} rows={rows} caption={caption} />;
  return { id: "triggering", title: "Triggering", inside };
}
