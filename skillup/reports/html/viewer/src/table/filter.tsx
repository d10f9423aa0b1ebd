/* The filter above the table: words, statuses, and what else the rows differ by. */
import { useState } from "preact/hooks";
import type { Row } from "../../dist/types";
import { Button, Sign, byId, plain } from "../dom";
import { count } from "../text/format";
import * as state from "../state";
import { NO_FILTER, STATUS, page, setFilter } from "../state";

export function FilterBar({ rows }: { rows: Row[] }) {
  const counts = tally(rows);
  const flaky = state.casesOf(rows.filter((row) => row.flaky));
  const clear = () => {
    setFilter(NO_FILTER);
    byId("filter-text")?.focus();
  };
  return (
    <div class="filter" role="search">
      <SearchField label="Filter cases by words" hint="Case, title, tag, reason; -not" />
      <label class="deep" title="Look for the words in messages, answers and tool calls, too">
        <input
          id="filter-deep"
          type="checkbox"
          checked={Boolean(page.filter.deep)}
          onChange={(event) => setFilter({ deep: event.currentTarget.checked ? "1" : null })}
        />{" "}
        in conversations
      </label>
      <div class="chips" role="group" aria-label="Status">
        {Object.keys(STATUS)
          .filter((status) => counts[status])
          .map((status) => (
            <StatusChip status={status} word={STATUS[status]!.word} number={counts[status]!} />
          ))}
        {/* Of cases, and beside the others, which are all trials together. */}
        {flaky ? (
          <StatusChip
            status="FLAKY"
            word={flaky === 1 ? "flaky case" : "flaky cases"}
            number={flaky}
          />
        ) : null}
      </div>
      {CHOICES.map(([key, all]) => (
        <Choice rows={rows} name={key} all={all} />
      ))}
      <Button
        id="clear"
        class="quiet"
        hidden={!Object.keys(NO_FILTER).some((key) => page.filter[key])}
        onClick={clear}
      >
        Clear
      </Button>
    </div>
  );
}

/* What is typed stays as it is, also with a space at its end; the filter has it without. */
export function SearchField({ label, hint }: { label: string; hint: string }) {
  const wanted = page.filter.q || "";
  const [typed, set] = useState(wanted);
  const onInput = (event: { currentTarget: HTMLInputElement }) => {
    set(event.currentTarget.value);
    setFilter({ q: event.currentTarget.value.trim() || null });
  };
  return (
    <input
      id="filter-text"
      type="search"
      placeholder={hint}
      autocomplete="off"
      spellcheck={false}
      aria-label={label}
      aria-keyshortcuts="/"
      aria-controls="rows"
      value={typed.trim() === wanted ? typed : wanted}
      onInput={onInput}
    />
  );
}

/* Puts a status into the filter, among others there, or takes it out again. */
function StatusChip({ status, word, number }: { status: string; word: string; number: number }) {
  const values = new Set(state.listOf(page.filter.status));
  const pressed = values.has(status) ? "true" : "false";
  const onClick = () => {
    if (!values.delete(status)) values.add(status);
    setFilter({ status: [...values].join(",") || null });
  };
  return (
    <Button
      class={`chip status-${status}`}
      aria-pressed={pressed}
      data-status={status}
      onClick={onClick}
    >
      <Sign status={status} /> {word} <span class="chip-count">{count(number)}</span>
    </Button>
  );
}

export function tally(rows: Row[]): Record<string, number> {
  const counts = Object.fromEntries(Object.keys(STATUS).map((status) => [status, 0]));
  for (const row of rows) counts[row.status] = (counts[row.status] || 0) + 1;
  return counts;
}

const CHOICES = [
  ["suite", "All suites"],
  ["engine", "All engines"],
  ["variant", "With and without"],
  ["tag", "All tags"],
] as const;

const VARIANT: Record<string, string> = {
  with_skill: "with the skill",
  without_skill: "without the skill",
};

function Choice(props: { rows: Row[]; name: "suite" | "engine" | "variant" | "tag"; all: string }) {
  const { rows, name, all } = props;
  const values = new Set(rows.flatMap((row) => (name === "tag" ? row.tags || [] : [row[name]])));
  if (values.size < (name === "tag" ? 1 : 2)) return null;
  return (
    <select
      aria-label={all}
      id={`filter-${name}`}
      value={page.filter[name] || ""}
      onChange={(event) => setFilter({ [name]: event.currentTarget.value || null })}
    >
      <option value="">{all}</option>
      {[...values].sort().map((value) => (
        <option value={value}>{plain(name === "variant" ? VARIANT[value] || value : value)}</option>
      ))}
    </select>
  );
}
