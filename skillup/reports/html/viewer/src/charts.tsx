/* Bars beside their numbers: how past runs fared, and where conversations first fail. */
import type { Index } from "../dist/types";
import { Table, type Cell } from "./dom";
import { count, mean, percent, time } from "./text/format";
import { firstFailure, hasVerdict, isBaseline } from "./state";

const bar = (share: number, status: string): Cell => ({
  text: <span class={`chart-bar status-${status}`} style={{ width: `${share * 100}%` }} />,
});

const chart = (counted: string, rows: Cell[][], caption: string) => (
  <>
    <p class="axis">{caption}</p>
    <Table heads={["", counted, ""]} rows={rows} caption={caption} />
  </>
);

/* How past runs and this one fared: each engine's mean of the pass rates of its cases. */
export function trend(index: Index) {
  const lines = new Map<string, { head: string; rates: number[] }>();
  const runs = new Set<string>();
  for (const one of index.history || [])
    for (const { run_id, started_at, passed, judged } of one.marks) {
      runs.add(run_id);
      const name = one.engine + (isBaseline(one) ? ", without the skill" : "");
      const key = `${started_at} ${run_id} ${name}`;
      const line = lines.get(key) || { head: `${time(started_at)} ${name}`, rates: [] };
      lines.set(key, line);
      if (judged) line.rates.push(passed / judged);
    }
  if (runs.size < 2) return null;
  const ordered = [...lines].sort(([a], [b]) => (a < b ? -1 : 1));
  const rows = ordered.map(([, { head, rates }]): Cell[] => {
    const rate = mean(rates, (one) => one);
    return [{ head }, { number: percent(rate) }, bar(rate || 0, "PASS")];
  });
  const caption = "Mean pass rate of the cases, runs from oldest to newest";
  return { id: "trend", title: "Over past runs", inside: chart("passed", rows, caption) };
}

/* Where conversations first fail: a bar for each turn, of the trials whose first failed turn it is. */
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
    const head = place === "end" ? "end" : `turn ${place}`;
    return [{ head }, { number: count(number) }, bar(number / most, "FAIL")];
  });
  const caption = `Trials that first failed there, of ${count(verdicts.length)} with a verdict`;
  const inside = chart("trials", rows, caption);
  return { id: "failures", title: "Where conversations first fail", inside };
}
