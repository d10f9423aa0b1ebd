/* Charts, as SVG. Every chart has a table that says the same in words. */
import type { CaseHistory, Index, Row, RunMark } from "../dist/types";
import { Fold, Table, type Cell } from "./dom";
import { count, known, mean, percent, plural, time } from "./text/format";
import { caseKey, firstFailure, hasVerdict, isBaseline } from "./state";
import { CaseLink } from "./summary";

type Value = number | null;

interface Series {
  name: string;
  values: Value[];
  partial: Value[]; // the same, of runs that are not whole
  held: number[];
  cases: number;
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [640, 190, 46, 40, 14, 24];

function LineChart({ labels, series, label }: { labels: string[]; series: Series[]; label: string }) {
  const sparse = Math.ceil(labels.length / (labels.some((one) => one.length > 5) ? 4 : 8));
  const step = (WIDTH - LEFT - RIGHT) / Math.max(1, labels.length - 1);
  const x = (at: number) => Math.round((LEFT + at * step) * 10) / 10;
  const y = (share: number) => Math.round((TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)) * 10) / 10;
  const points = (values: Value[]) =>
    values.flatMap((value, at) => (known(value) ? [{ cx: x(at), cy: y(value) }] : []));
  return (
    <div class="chart" role="img" aria-label={label}>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <g>
            <line class="chart-grid" x1={LEFT} x2={WIDTH - RIGHT} y1={y(share)} y2={y(share)} />
            <text class="chart-label" x={LEFT - 6} y={y(share) + 4} text-anchor="end">
              {`${share * 100} %`}
            </text>
          </g>
        ))}
        {labels.map((text, at) =>
          at % sparse ? null : (
            <text class="chart-label chart-run" x={x(at)} y={HEIGHT - 4} text-anchor="middle">
              {text}
            </text>
          ),
        )}
        {series.map((one, at) => (
          <g class={`chart-${at % 6}`}>
            <polyline class="chart-line" points={points(one.values).map(({ cx, cy }) => `${cx},${cy}`).join(" ")} />
            {points(one.values).map((place) => (
              <circle class="chart-point" r={3} {...place} />
            ))}
            {points(one.partial).map((place) => (
              <circle class="chart-ring" r={3.5} {...place} />
            ))}
          </g>
        ))}
      </svg>
    </div>
  );
}

/* Days; where several runs were on one day, times, with the day if there are several days. */
export function runLabels(times: string[]): string[] {
  const texts = times.map((one) => time(one));
  const days = texts.map((text) => text.slice(5, 10));
  const different = new Set(days).size;
  if (different === days.length) return days;
  return texts.map((text) => text.slice(different === 1 ? 11 : 5));
}

/* How past runs and this one fared: of each engine, the mean of its cases' pass rates. A run that has a
   verdict of fewer than nine in ten of the cases is drawn beside the line, as a ring. */
export function trend(index: Index) {
  const history = index.history || [];
  const started = new Map(
    history.flatMap((one) => one.marks.map((mark) => [mark.run_id, mark.started_at] as const)),
  );
  if (started.size < 2) return null;
  const order = [...started.keys()].sort((a, b) => (started.get(a)! < started.get(b)! ? -1 : 1));
  const lines = new Map<string, Map<string, number[]>>();
  for (const one of history) {
    const name = one.engine + (isBaseline(one) ? ", without the skill" : "");
    const line = lines.get(name) || new Map<string, number[]>();
    lines.set(name, line);
    for (const mark of one.marks)
      if (mark.held)
        line.set(mark.run_id, [...(line.get(mark.run_id) || []), mark.passed / mark.held]);
  }
  const series = [...lines].map(([name, by]): Series => {
    const rates = order.map((id) => by.get(id) || []);
    const held = rates.map((one) => one.length);
    const cases = Math.max(...held);
    const some = (whole: boolean) =>
      rates.map((one) => (one.length >= 0.9 * cases === whole ? mean(one, (rate) => rate) : null));
    return { name, held, cases, values: some(true), partial: some(false) };
  });
  const rings = series.some((one) => one.partial.some(known));
  const number = (one: Series, at: number): Cell => {
    const only = known(one.partial[at]) ? ` (${one.held[at]} of ${one.cases} cases)` : "";
    return { number: percent(one.values[at] ?? one.partial[at]) + only };
  };
  const rows = () =>
    order.map((id, at): Cell[] => [
      { head: `${time(started.get(id))} ${id}` },
      ...series.map((one) => number(one, at)),
    ]);
  const heads = ["run", ...series.map((one) => one.name)];
  const inside = (
    <>
      <p class="axis">mean pass rate of the cases</p>
      <LineChart
        labels={runLabels(order.map((id) => started.get(id)!))}
        series={series}
        label={`Mean pass rate of the cases over ${order.length} runs; the table below has the numbers`}
      />
      <p class="axis axis-x">runs, oldest to newest</p>
      {series.length > 1 ? (
        <ul class="legend">
          {series.map((one, at) => (
            <li>
              <span class={`legend-key legend-${at % 6}`} aria-hidden="true" />
              {one.name}
            </li>
          ))}
        </ul>
      ) : null}
      {rings ? (
        <p class="aside">
          <span class="ring-key" aria-hidden="true" />a run with verdicts of only some of the cases
        </p>
      ) : null}
      <FailingSince index={index} history={history} />
      <Fold
        class="chart-table"
        summary="As a table"
        inside={() => <Table heads={heads} rows={rows()} caption="Mean pass rate by run" />}
      />
      <Fold
        class="chart-table"
        summary={`Each case (${history.length})`}
        inside={() => <CaseMarks history={history} order={order} />}
      />
    </>
  );
  return { id: "trend", title: "Over past runs", inside };
}

/* Cases that ran several times in a run tell how often they passed before and since. */
function FailingSince({ index, history }: { index: Index; history: CaseHistory[] }) {
  const failing = history.filter((one) => {
    const since = one.failing_since;
    return since && (since.runs > 1 || since.before);
  });
  if (!failing.length) return null;
  const of = (passes: number[] = []) => `${passes[0]} of ${passes[1]}`;
  return (
    <ul class="plain">
      {failing.map((one) => {
        const { started_at, runs, before, since } = one.failing_since!;
        const day = time(started_at);
        return (
          <li>
            <CaseLink index={index} of={one} />{" "}
            {before
              ? `(${one.engine}) fell at ${day}: ${of(before)} passed before, ${of(since)} since.`
              : `(${one.engine}) has failed in the last ${plural(runs, "run")}, since ${day}.`}
          </li>
        );
      })}
    </ul>
  );
}

function markOf(mark: RunMark | undefined): [string, string, string] {
  if (!mark) return ["–", "not held", "NOT_HELD"];
  if (!mark.held) return mark.error ? ["!", "ended in an error", "ERROR"] : ["○", "no verdict", "SKIP"];
  const errors = mark.error ? `, ${mark.error} in an error` : "";
  const says = `${mark.passed} of ${mark.held} passed${errors}`;
  if (mark.passed === mark.held) return ["●", says, "PASS"];
  return [mark.passed ? "◐" : "✗", says, "FAIL"];
}

function CaseMarks({ history, order }: { history: CaseHistory[]; order: string[] }) {
  const dots = (one: CaseHistory) => {
    const by = new Map(one.marks.map((mark) => [mark.run_id, mark]));
    return order.map((id) => {
      const mark = by.get(id);
      const [sign, words, status] = markOf(mark);
      const title = `${mark ? time(mark.started_at) : id}: ${words}`;
      return (
        <span class={`dot status-${status}`} role="img" title={title} aria-label={words}>
          {sign}
        </span>
      );
    });
  };
  const rows = history.map((one): Cell[] => [
    { head: one.case_id },
    { text: one.engine + (isBaseline(one) ? ", without" : "") },
    { text: <span class="dots">{dots(one)}</span> },
  ]);
  return <Table heads={["case", "engine", "oldest to newest"]} rows={rows} caption="Each case's past runs" />;
}

const COLOURED = 6;
type Place = number | "end";

/* Where conversations first fail: a bar for each turn, of the trials whose first failed turn it is. */
export function firstFailures(index: Index) {
  const baseline = index.rows.some(isBaseline);
  const rows = index.rows.filter((row) => !isBaseline(row));
  const verdicts = rows.filter(hasVerdict);
  const longest = Math.max(0, ...verdicts.map((row) => row.turns.length));
  // Those that failed most first.
  const by = new Map<string, { row: Row; at: Map<Place, number>; total: number }>();
  for (const row of verdicts) {
    const at = firstFailure(row)?.at;
    if (!at) continue;
    const one = by.get(caseKey(row)) || { row, at: new Map<Place, number>(), total: 0 };
    by.set(caseKey(row), one);
    one.at.set(at, (one.at.get(at) || 0) + 1);
    one.total += 1;
  }
  const cases = [...by.values()].sort((a, b) => b.total - a.total);
  if (cases.reduce((sum, one) => sum + one.total, 0) < 2 || longest < 2) return null;
  const places: Place[] = Array.from({ length: longest }, (_, at) => at + 1);
  if (cases.some((one) => one.at.has("end"))) places.push("end");
  const sum = (place: Place) => cases.reduce((all, one) => all + (one.at.get(place) || 0), 0);
  const most = Math.max(...places.map(sum));
  const engines = new Set(rows.map((row) => row.engine)).size > 1;
  const name = ({ row }: { row: Row }) => row.case_id + (engines ? `, ${row.engine}` : "");
  const placeName = (place: Place) => (place === "end" ? "end" : `turn ${place}`);
  const others = cases.length - COLOURED;
  const key = (at: number) => <span class={`part-key part-${at}`} aria-hidden="true" />;
  const table = () =>
    cases.map((one): Cell[] => [
      { head: <CaseLink index={index} of={one.row} /> },
      ...places.map((place) => ({ number: count(one.at.get(place) || 0) })),
    ]);
  const inside = (
    <>
      <p class="axis">
        trials that first failed there, of {count(verdicts.length)} with a verdict
        {baseline ? " and the skill" : ""}
      </p>
      <div
        class="turn-bars"
        role="img"
        aria-label="Trials that first failed at each turn; the table below has the numbers"
      >
        {places.map((place) => (
          <div class="turn-bar">
            <span class="turn-bar-name">{placeName(place)}</span>
            <span class="turn-bar-track">
              {cases.map((one, at) => {
                const number = one.at.get(place);
                if (!number) return null;
                return (
                  <span
                    class={`turn-bar-part part-${Math.min(at, COLOURED)}`}
                    style={{ width: `${(number / most) * 100}%` }}
                    title={`${name(one)}: ${plural(number, "trial")}`}
                  />
                );
              })}
              <span class="turn-bar-count">{sum(place) ? count(sum(place)) : ""}</span>
            </span>
          </div>
        ))}
      </div>
      <ul class="legend">
        {cases.slice(0, COLOURED).map((one, at) => (
          <li>
            {key(at)}
            {name(one)}
          </li>
        ))}
        {others > 0 ? (
          <li>
            {key(COLOURED)}
            {plural(others, "other case")}
          </li>
        ) : null}
      </ul>
      <Fold
        class="chart-table"
        summary="As a table"
        inside={() => (
          <Table
            heads={["case", ...places.map(placeName)]}
            rows={table()}
            caption="Trials that first failed at each turn, by case"
          />
        )}
      />
    </>
  );
  return { id: "failures", title: "Where conversations first fail", inside };
}
