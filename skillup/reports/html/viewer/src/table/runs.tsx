/* The start page of `skillup view`: every run of a folder, newest first; of many, the first on
   request. */
import type { RunLine } from "../data";
import { SignAndWord, TableHead } from "../dom";
import { SearchField } from "./filter";
import { MoreButton } from "./table";
import { cost, count, duration, plural, time } from "../text/format";
import { FIRST, STATUS, page } from "../state";

const RUN_STATE: Record<string, [string, string]> = {
  running: ["live", "running"],
  unfinished: ["tag", "not finished"],
  damaged: ["tag", "damaged"],
};

export function RunsPage({ runs }: { runs: RunLine[] }) {
  const words = (page.filter.q || "").toLowerCase().split(/\s+/).filter(Boolean);
  const found = runs.filter((run) => {
    const parts = [run.id, run.run_id, run.status, ...run.suites, ...run.engines];
    const text = parts.filter(Boolean).join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const some = page.all ? found : found.slice(0, FIRST);
  const all = plural(runs.length, "run");
  return (
    <section class="cases">
      <h1>Runs</h1>
      {runs.length ? null : (
        <p class="notice">
          There is no run here yet. <code>skillup run</code> makes one.
        </p>
      )}
      <div class="filter" role="search">
        <SearchField label="Filter runs by words" hint="Filter runs" />
        <output id="shown" class="shown">
          {found.length === runs.length ? all : `${found.length} of ${all}`}
        </output>
      </div>
      <table class="cases-table runs-table">
        <TableHead
          heads={["Started", "Run", "Suites", "Engines", "Result", "Time", "Cost"]}
          caption="All runs, newest first"
        />
        <tbody id="rows">
          {some.map((run) => (
            <RunRow key={run.id} run={run} />
          ))}
        </tbody>
      </table>
      <MoreButton shown={some.length} all={found.length} />
    </section>
  );
}

function RunRow({ run }: { run: RunLine }) {
  const [name, word] = RUN_STATE[run.status] || ["", ""];
  const far =
    name && run.status !== "damaged" ? ` ${count(run.done)} of ${count(run.planned)}` : "";
  return (
    <tr data-run={run.id}>
      <td>{time(run.started_at)}</td>
      <th scope="row">
        <a class="case-link" href={`#/run/${encodeURIComponent(run.id)}/`}>
          {run.id}
        </a>{" "}
        {word ? <span class={name}>{word + far}</span> : null}
        {run.problem ? <span class="reason">{run.problem}</span> : null}
      </th>
      <td>{run.suites.join(", ")}</td>
      <td>{run.engines.join(", ")}</td>
      <td>
        <span class="run-counts">
          {Object.entries(run.counts || {})
            .filter(([, number]) => number)
            .map(([status, number]) => {
              const { sign, word } = STATUS[status]!;
              return <SignAndWord sign={sign} word={`${count(number)} ${word}`} status={status} />;
            })}
        </span>
      </td>
      <td class="number">{duration(run.duration_ms)}</td>
      <td class="number">{cost(run.cost_usd)}</td>
    </tr>
  );
}
