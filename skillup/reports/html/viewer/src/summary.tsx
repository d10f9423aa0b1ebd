/* The first page: one honest sentence, then the cases, then what it rests on. */
import type { ComponentChildren } from "preact";
import type { CaseReliability, Difference, Engine, EngineInfo, Index, Rate, Row, Uplift } from "../dist/types";
import { firstFailures, trend } from "./charts";
import { AgainstChoice, SidesView } from "./compare";
import { Aside, Fold, Panel, Sign, Table, type Cell } from "./dom";
import { asSentence, cost, count, duration, interval, known, mean, percent, plural, points } from "./text/format";
import { score, signed, tokenText, tokens, usageText } from "./text/format";
import { NO_FILTER, STATUS, address, caseKey, caseOf, hasVerdict, isBaseline, trialAddress } from "./state";
import { CaseTable, Decision, Since, tally } from "./table";

/* Wilson's interval of a rate; docs/statistics.md has the arithmetic. */
export function wilson(passed: number, held: number, confidence: number): [number, number] {
  const z = quantile((1 + confidence) / 2);
  const rate = passed / held;
  const middle = rate + (z * z) / (2 * held);
  const half = z * Math.sqrt((rate * (1 - rate)) / held + (z * z) / (4 * held * held));
  const whole = 1 + (z * z) / held;
  return [Math.max(0, (middle - half) / whole), Math.min(1, (middle + half) / whole)];
}

/* The standard normal's quantile, by halving; its distribution by Simpson's rule. */
function quantile(share: number): number {
  const density = (x: number) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
  const below = (x: number) => {
    let sum = density(0) + density(x);
    for (let step = 1; step < 200; step++) sum += density((x * step) / 200) * (step % 2 ? 4 : 2);
    return 0.5 + (sum * x) / 600;
  };
  let [low, high] = [0, 8];
  for (let round = 0; round < 50; round++) {
    const middle = (low + high) / 2;
    if (below(middle) < share) low = middle;
    else high = middle;
  }
  return low;
}

/* The cases of rows, and the mean of their pass rates: each counts the same, however many verdicts it has;
   on several engines it is one case. Said where trials are more than cases. */
function ofCases(verdicts: Row[]): { cases: number; text: string } {
  const by = new Map<string, number[]>();
  for (const row of verdicts) {
    if (!by.has(caseOf(row))) by.set(caseOf(row), []);
    by.get(caseOf(row))!.push(row.status === "PASS" ? 1 : 0);
  }
  const rate = mean([...by.values()], (held) => mean(held, (one) => one));
  const needless = by.size < 2 || by.size === verdicts.length;
  return { cases: by.size, text: needless ? "" : `; mean of ${count(by.size)} cases ${percent(rate)}` };
}

/* ", 95 % interval 69–90 %". Trials of one case are not as many cases: where there are several the analysis
   has an interval over cases, which stands with their mean. Without an analysis there is no interval. */
function intervalText({ analysis }: Index, verdicts: Row[], passed: number): string {
  const confidence = analysis?.confidence || 0.95;
  const level = `, ${Math.round(confidence * 100)}\u202f% interval `;
  const { cases, text } = ofCases(verdicts);
  if (cases === verdicts.length) return level + interval(...wilson(passed, verdicts.length, confidence));
  const overall = analysis?.overall;
  return overall?.held === verdicts.length ? text + level + interval(overall.low, overall.high) : text;
}

function rest(counts: Record<string, number>, words: Record<string, string>): string[] {
  const named = { SKIP: "skipped", RUNNING: "running", WAITING: "waiting", NOT_HELD: "not run" };
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
      `(${rate}${intervalText(index, verdicts, passed)})`
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
  const rate = percent(counts.PASS! / verdicts.length) + ofCases(verdicts).text;
  const first = verdicts.length
    ? `${count(counts.PASS)} of ${count(verdicts.length)} passed (${rate})`
    : "no trial has a verdict";
  const parts = [first, ...rest(counts, { ERROR: counts.ERROR === 1 ? "error" : "errors" })];
  return <p id="baseline">Without the skill {parts.join("; ")}.</p>;
}

type Part = { id: string; title: string; inside: ComponentChildren } | null;

export function FirstPage({ index }: { index: Index }) {
  const lower = [flaky(index), firstFailures(index), trend(index), engines(index), triggering(index)];
  const parts = lower.filter((part) => part !== null);
  const took = totals(index);
  const added = uplift(index);
  const panel = (part: Part) =>
    part && (
      <Panel id={part.id} title={part.title}>
        {part.inside}
      </Panel>
    );
  return (
    <div class="first-page">
      <section class="summary" aria-labelledby="headline">
        <h1 id="headline">{sentence(index)}</h1>
        <Baseline index={index} />
        <Bar index={index} />
        {index.deciding?.length ? <p id="deciding">{index.deciding.map(asSentence).join(" ")}</p> : null}
        <StoppedNotice index={index} />
        {(index.warnings || []).map((text) => (
          <p class="notice warning">{text}</p>
        ))}
        <nav class="jumps" aria-label="Parts of this page">
          {[...parts, took].map((part) =>
            part ? (
              <a href={address("", { go: part.id })} class={`to-${part.id}`}>
                {part.title}
              </a>
            ) : null,
          )}
        </nav>
      </section>
      <div class="differences">
        {panel(added)}
        <AgainstChoice />
        {index.sides ? <SidesView sides={index.sides} /> : null}
      </div>
      <CaseTable index={index} />
      {panel(took)}
      {parts.length ? <div class="summary-parts">{parts.map(panel)}</div> : null}
    </div>
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
          This run did not finish. <code>skillup run --resume {run.path || run.run_id}</code> completes it.
        </>
      )}
    </p>
  );
}

/* The shares of the statuses as one bar, and below it what each part is; a click leads to these. */
function Bar({ index }: { index: Index }) {
  const rows = index.rows.filter((row) => !isBaseline(row));
  const parts = Object.entries(tally(rows)).filter(([, number]) => number > 0);
  if (!parts.length) return null;
  const variant = rows.length < index.rows.length ? "with_skill" : null;
  const to = (status: string) => address("", { status, q: null, variant, go: "cases" });
  const words = ([status, number]: [string, number]) => `${number} ${STATUS[status]!.word}`;
  return (
    <div class="bar-whole" role="group" aria-label={`Trials ${variant ? "with the skill " : ""}by status`}>
      <div class="bar" aria-hidden="true">
        {parts
          .filter(([status]) => status !== "NOT_NEEDED")
          .map((part) => (
            <a
              class={`bar-part status-${part[0]}`}
              style={{ flexGrow: part[1] }}
              href={to(part[0])}
              tabIndex={-1}
              title={words(part)}
              aria-label={words(part)}
            />
          ))}
      </div>
      <div class="bar-legend">
        {parts.map((part) => (
          <a
            class={`bar-name status-${part[0]}`}
            href={to(part[0])}
            aria-label={`${words(part)}: show only these`}
          >
            <Sign status={part[0]} /> {count(part[1])} {STATUS[part[0]]!.word}
          </a>
        ))}
      </div>
    </div>
  );
}

/* "claude (claude_code 2.1.0, sonnet)" */
export function engineText(engine: Engine | EngineInfo): string {
  const adapter = [engine.adapter, engine.version].filter(Boolean).join(" ");
  const inside = [adapter, engine.model].filter(Boolean).join(", ");
  return engine.profile + (inside && inside !== engine.profile ? ` (${inside})` : "");
}

/* Money, tokens and time: the agent's, the judges' and the simulated user's apart. */
function totals({ summary, rows, run }: Index): Part {
  if (!summary) return null;
  const { judging } = summary;
  const users = rows.map((row) => row.simulator).filter((one) => known(one));
  const by = (models: string[] | undefined, word: string) =>
    models?.length ? ` ${word} ${models.join(", ")}` : "";
  const line = (who: string, dollars: number | null, used: number | null, note: string, title = ""): Cell[] => [
    { head: who },
    { number: cost(dollars) },
    { number: tokenText(used), title },
    { text: note },
  ];
  const lines = [line("Agent", summary.cost_usd, tokens(summary.usage), "", usageText(summary.usage))];
  if (judging) {
    const cached = judging.cached_calls ? `, ${count(judging.cached_calls)} from the cache` : "";
    const note = plural(judging.calls, "request") + cached + by(judging.models, "to");
    lines.push(line("Judges", judging.cost_usd, tokens(judging.usage), note, usageText(judging.usage)));
  }
  if (users.length) {
    // A sum of nothing known is not known; and what was stored costs nothing, where all of it is known.
    const sum = (values: Array<number | null>) =>
      values.some(known) ? values.filter(known).reduce((a, b) => a + b, 0) : null;
    const costs = users.map((one) => one.cost_usd);
    const spent = costs.every(known) ? sum(costs) : sum(costs) || null;
    const models = [...new Set(users.flatMap((one) => one.models || []))];
    const note = plural(sum(users.map((one) => one.messages)) || 0, "message") + by(models, "by");
    lines.push(line("Simulated user", spent, sum(users.map((one) => one.tokens)), note));
  }
  const inside = (
    <>
      <Table heads={["", "cost", "tokens", ""]} rows={lines} caption="Cost and tokens, by who spent them" />
      <p class="aside">
        Time: {run.since ? <Since iso={run.since} /> : duration(summary.duration_ms)}
        {run.since ? " so far" : ""}
        {run.engines?.length ? `. ${run.engines.map(engineText).join("; ")}` : ""}.
      </p>
    </>
  );
  return { id: "totals", title: "What it took", inside };
}

const rateText = (rate: Rate | null) =>
  known(rate?.rate) ? `${percent(rate.rate)} (${rate.passed}/${rate.held})` : "–";

function Meter({ rate }: { rate: Rate }) {
  if (!known(rate?.rate)) return <span>–</span>;
  const share = (value: number) => `${value * 100}%`;
  return (
    <span class="rate" title={`interval ${interval(rate.low, rate.high)}`}>
      <span class="meter" aria-hidden="true">
        <span class="meter-value" style={{ width: share(rate.rate) }} />
        {known(rate.low) && known(rate.high) ? (
          <span class="meter-interval" style={{ left: share(rate.low), width: share(rate.high - rate.low) }} />
        ) : null}
      </span>
      <span>{rateText(rate)}</span>
    </span>
  );
}

/* Each engine's rate and means, and each case by engine; a single one would say the headline again. */
function engines(index: Index): Part {
  const columns = index.analysis?.engines || [];
  if (columns.length < 2) return null;
  const suites = new Set(columns.map((column) => column.suite)).size > 1;
  const means = "passed,errors,score,turns,tokens,cost,time".split(",");
  const rows = columns.map((column): Cell[] => [
    { head: (suites ? `${column.suite}, ` : "") + column.engine },
    { text: <Meter rate={column.rate} /> },
    { number: count(column.error) },
    { number: score(column.score) },
    { number: score(column.turns) },
    { number: tokenText(column.tokens) },
    { number: cost(column.cost_usd) },
    { number: duration(column.duration_ms) },
  ]);
  const caption = "Engines side by side; turns, tokens, cost and time are per trial";
  const inside = (
    <>
      <Table heads={[suites ? "suite, engine" : "engine", ...means]} rows={rows} caption={caption} />
      <CaseMatrix index={index} />
    </>
  );
  return { id: "engines", title: "Side by side", inside };
}

function CaseMatrix({ index }: { index: Index }) {
  const engines = [...new Set(index.rows.map((row) => row.engine))];
  if (engines.length < 2) return null;
  const cases = new Map<string, Row[]>();
  for (const row of index.rows.filter((row) => !isBaseline(row))) {
    if (!cases.has(caseOf(row))) cases.set(caseOf(row), []);
    cases.get(caseOf(row))!.push(row);
  }
  const dot = (row: Row) => {
    const { word, sign } = STATUS[row.status]!;
    return (
      <a
        href={trialAddress(row.n)}
        class={`dot status-${row.status}`}
        title={row.reason || ""}
        aria-label={`${row.case_id}, ${row.engine}, trial ${row.trial}: ${word}`}
      >
        {sign}
      </a>
    );
  };
  const lines = () =>
    [...cases.values()].map((rows): Cell[] => [
      { head: rows[0]!.case_id },
      ...engines.map((engine) => ({
        text: <span class="dots">{rows.filter((row) => row.engine === engine).map(dot)}</span>,
      })),
    ]);
  return (
    <Fold
      class="matrix"
      summary={`Each case by engine (${cases.size})`}
      inside={() => <Table heads={["case", ...engines]} rows={lines()} caption="Each case's trials by engine" />}
      start={cases.size <= 12}
    />
  );
}

function differenceCell(difference: Difference | null, format: (value: number) => string): Cell {
  if (!difference) return { text: "–" };
  const { difference: by, with_skill, without_skill } = difference;
  return {
    number: (by > 0 ? "+" : by < 0 ? "−" : "±") + format(Math.abs(by)),
    title: `${format(with_skill)} with, ${format(without_skill)} without`,
  };
}

/* With against without the skill. Of a suite, rates are over those cases that its uplift is over. */
function uplift({ analysis }: Index): Part {
  const all = analysis?.uplift || [];
  if (!all.length) return null;
  const several = (key: "suite" | "engine") => new Set(all.map((one) => one[key])).size > 1;
  const [suites, engines] = [several("suite"), several("engine")];
  const rate = (one: Uplift, side: "with_skill" | "without_skill") => {
    if (one.case_id) return rateText(one[side]);
    const same = all.filter((other) => other.suite === one.suite && other.engine === one.engine);
    return percent(mean(same.filter((other) => other.case_id && known(other.uplift)), (x) => x[side].rate));
  };
  const points100 = (share: number) => signed(Math.round(share * 100));
  const chance = (p: number) => (p < 0.001 ? "<0.001" : String(Math.round(p * 1000) / 1000));
  const line = (one: Uplift): Cell[] => [
    {
      head: one.case_id
        ? [one.case_id, suites && one.suite, engines && one.engine].filter(Boolean).join(", ")
        : `${one.suite}, ${one.engine} (${one.cases > 1 ? "mean of " : ""}${plural(one.cases, "case")})`,
    },
    { number: rate(one, "with_skill") },
    { number: rate(one, "without_skill") },
    { number: points(one.uplift), class: "strong" },
    { number: known(one.low) && known(one.high) ? `${points100(one.low)} to ${points100(one.high)}` : "–" },
    { number: known(one.p) ? chance(one.p) : "–" },
    differenceCell(one.turns, score),
    differenceCell(one.tokens, tokenText),
    differenceCell(one.cost_usd, cost),
    differenceCell(one.duration_ms, duration),
  ];
  const heads = ["", "with", "without", "uplift", "interval", "p", "turns", "tokens", "cost", "time"];
  const table = (some: Uplift[], caption: string) => (
    <Table heads={heads} rows={some.map(line)} caption={caption} />
  );
  const cases = all.filter((one) => one.case_id);
  const suitesOnly = all.filter((one) => !one.case_id);
  const inside = (
    <>
      {table(suitesOnly, "Pass rates with and without the skill")}
      {cases.length ? (
        <Fold summary={`By case (${cases.length})`} inside={() => table(cases, "The same, by case")} />
      ) : null}
    </>
  );
  return { id: "uplift", title: "What the skill adds", inside };
}

/* Cases whose trials disagree; not how the agent wavers without the skill. */
function flaky(index: Index): Part {
  const all = (index.analysis?.cases || []).filter((one) => one.flaky && !isBaseline(one));
  if (!all.length) return null;
  // The chances of a few trials, as the terminal has them: of half of those held, as of all of them a
  // flaky case has one pass surely and a full pass never.
  const atK = (one: CaseReliability) => {
    const k = Math.min(5, Math.max(2, Math.floor(one.rate.held / 2)));
    const found = k < one.rate.held && (one.at_k || []).find((item) => item.k === k);
    if (!found) return null;
    return <Aside>{`; pass@${k} ${percent(found.pass_at_k)}, pass^${k} ${percent(found.pass_hat_k)}`}</Aside>;
  };
  const inside = (
    <ul class="plain">
      {all.map((one) => (
        <li>
          <CaseLink index={index} of={one} /> <Aside>{one.engine}: </Aside>
          {`${one.rate.passed} of ${one.rate.held} passed`}
          <Aside>{` (${interval(one.rate.low, one.rate.high)})`}</Aside>
          {atK(one)}
          <Decision of={one} before="; " />
        </li>
      ))}
    </ul>
  );
  return { id: "flaky", title: `Flaky (${all.length})`, inside };
}

const firsts = new WeakMap<Row[], Map<string, Row>>(); // case → the first of its rows, made once

/* To a case's line in the table, unfolded and not hidden by the filter. */
export function CaseLink({ index: { rows }, of }: { index: Index; of: { case_id: string } & Parameters<typeof caseKey>[0] }) {
  if (!firsts.has(rows)) firsts.set(rows, new Map([...rows].reverse().map((row) => [caseKey(row), row])));
  const row = firsts.get(rows)!.get(caseKey(of));
  if (!row) return <span>{of.case_id}</span>;
  return <a href={address("", { ...NO_FILTER, go: String(row.n) })}>{of.case_id}</a>;
}

/* Whether skills are used when they should be, and only then. */
function triggering({ analysis }: Index): Part {
  const all = analysis?.triggering || [];
  if (!all.length) return null;
  const heads = "skill,precision,recall,F1,used rightly,missed,used wrongly,rightly not used".split(",");
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
  const inside = <Table heads={heads} rows={rows} caption="Whether each skill was used when it should be" />;
  return { id: "triggering", title: "Triggering", inside };
}
