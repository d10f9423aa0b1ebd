/* Charts, as SVG and bars. Every chart has a table that says the same in words. */
import type { CaseHistory, Index } from "../dist/types";
import { Fold, Table, type Cell } from "./dom";
import { count, known, mean, percent, time } from "./text/format";
import { firstFailure, hasVerdict, isBaseline } from "./state";

type Value = number | null;

interface Series {
  name: string;
  values: Value[];
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [640, 190, 46, 40, 14, 24];

function LineChart({ times, series }: { times: string[]; series: Series[] }) {
  const step = (WIDTH - LEFT - RIGHT) / Math.max(1, times.length - 1);
  const x = (at: number) => Math.round((LEFT + at * step) * 10) / 10;
  const y = (share: number) => Math.round((TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)) * 10) / 10;
  const points = (values: Value[]) =>
    values.flatMap((value, at) => (known(value) ? [{ cx: x(at), cy: y(value) }] : []));
  const sparse = Math.ceil(times.length / 4);
  const label = `Mean pass rate over ${times.length} runs; the table below has the numbers`;
  return (
    <div class="chart" role="img" aria-label={label}>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
        {[0, 0.5, 1].map((share) => (
          <g>
            <line class="chart-grid" x1={LEFT} x2={WIDTH - RIGHT} y1={y(share)} y2={y(share)} />
            <text class="chart-label" x={LEFT - 6} y={y(share) + 4} text-anchor="end">
              {`${share * 100} %`}
            </text>
          </g>
        ))}
        {times.map((iso, at) =>
          at % sparse ? null : (
            <text class="chart-label" x={x(at)} y={HEIGHT - 4} text-anchor="middle">
              {time(iso).slice(5)}
            </text>
          ),
        )}
        {series.map(({ values }, at) => (
          <g class={`chart-${at % 6}`}>
            <polyline
              class="chart-line"
              points={points(values)
                .map(({ cx, cy }) => `${cx},${cy}`)
                .join(" ")}
            />
            {points(values).map((place) => (
              <circle class="chart-point" r={3} {...place} />
            ))}
          </g>
        ))}
      </svg>
    </div>
  );
}

/* Each engine's means, run by run: of the pass rates of those cases that have a verdict. */
function seriesOf(history: CaseHistory[], order: string[]): Series[] {
  const lines = new Map<string, Map<string, number[]>>();
  for (const one of history) {
    const name = one.engine + (isBaseline(one) ? ", without the skill" : "");
    const line = lines.get(name) || new Map<string, number[]>();
    lines.set(name, line);
    for (const { run_id, held, passed } of one.marks)
      if (held) line.set(run_id, [...(line.get(run_id) || []), passed / held]);
  }
  return [...lines].map(([name, by]) => ({
    name,
    values: order.map((id) => mean(by.get(id) || [], (rate) => rate)),
  }));
}

/* How past runs and this one fared. */
export function trend(index: Index) {
  const history = index.history || [];
  const marks = history.flatMap((one) => one.marks);
  const started = new Map(marks.map((mark) => [mark.run_id, mark.started_at]));
  if (started.size < 2) return null;
  const order = [...started.keys()].sort((a, b) => (started.get(a)! < started.get(b)! ? -1 : 1));
  const series = seriesOf(history, order);
  const rows = () =>
    order.map((id, at): Cell[] => [
      { head: `${time(started.get(id))} ${id}` },
      ...series.map((one) => ({ number: percent(one.values[at]) })),
    ]);
  const heads = ["run", ...series.map((one) => one.name)];
  const inside = (
    <>
      <p class="axis">mean pass rate of the cases, runs from oldest to newest</p>
      <LineChart times={order.map((id) => started.get(id)!)} series={series} />
      {series.length > 1 ? (
        <ul class="legend">
          {series.map((one, at) => (
            <li>
              <span class={`legend-key chart-${at % 6}`} aria-hidden="true" />
              {one.name}
            </li>
          ))}
        </ul>
      ) : null}
      <Fold
        class="chart-table"
        summary="As a table"
        inside={() => <Table heads={heads} rows={rows()} caption="Mean pass rate by run" />}
      />
    </>
  );
  return { id: "trend", title: "Over past runs", inside };
}

/* Where conversations first fail: a bar for each turn, of the trials whose first failed turn it
   is. */
export function firstFailures(index: Index) {
  const verdicts = index.rows.filter((row) => !isBaseline(row) && hasVerdict(row));
  const counts = new Map<number | "end", number>();
  for (const row of verdicts) {
    const at = firstFailure(row)?.at;
    if (at) counts.set(at, (counts.get(at) || 0) + 1);
  }
  const longest = Math.max(0, ...verdicts.map((row) => row.turns.length));
  const all = [...counts.values()].reduce((sum, one) => sum + one, 0);
  if (all < 2 || longest < 2) return null;
  const places: Array<number | "end"> = Array.from({ length: longest }, (_, at) => at + 1);
  if (counts.has("end")) places.push("end");
  const most = Math.max(...counts.values());
  const rows = places.map((place): Cell[] => {
    const number = counts.get(place) || 0;
    const style = { width: `${(number / most) * 100}%` };
    return [
      { head: place === "end" ? "end" : `turn ${place}` },
      { number: count(number) },
      { text: <span class="turn-bar" style={style} aria-hidden="true" /> },
    ];
  });
  const caption = `Trials that first failed there, of ${count(verdicts.length)} with a verdict`;
  const inside = (
    <>
      <p class="axis">{caption}</p>
      <Table heads={["", "trials", ""]} rows={rows} caption={caption} />
    </>
  );
  return { id: "failures", title: "Where conversations first fail", inside };
}
