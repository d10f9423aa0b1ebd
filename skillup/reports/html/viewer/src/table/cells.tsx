/* What stands in a line of the table: signs of turns and trials, where and why it failed, what was
   decided. */
import type { CaseReliability, Decided, FailingSince, Row } from "../../dist/types";
import { rowMark } from "../data";
import { Aside } from "../dom";
import { count, plural, time } from "../text/format";
import * as state from "../state";
import { STATUS, trialAddress, type Group } from "../state";

const MOST_DOTS = 24;
const MOST_REASONS = 3;

/* A sign for each turn; and one at the end, where a check of the whole conversation failed. */
export function TurnDots({ row }: { row: Row }) {
  const marks = row.turns.map(rowMark);
  const words = marks.map((mark, at) => `turn ${at + 1} ${mark.word}`);
  const end = row.end === false;
  if (end) words.push("a check of the whole conversation failed");
  const text = words.join(", ");
  return (
    <span class="dots" role="img" aria-label={text || "no turns"} title={text}>
      {marks.slice(0, MOST_DOTS).map((mark) => (
        <span class={`dot status-${mark.status}`}>{mark.sign}</span>
      ))}
      {marks.length > MOST_DOTS ? `+${marks.length - MOST_DOTS}` : null}
      {end ? <span class="dot end status-FAIL">✗ end</span> : null}
    </span>
  );
}

/* "3/5", and a sign for each trial that opens it; the trials below, unfolded, are for the
   keyboard. */
export function TrialDots({ rows }: { rows: Row[] }) {
  const passed = rows.filter((row) => row.status === "PASS").length;
  const judged = rows.filter(state.hasVerdict).length;
  return (
    <span class="trial-dots">
      <span class="strong" title={`${passed} of ${judged} passed`}>
        {judged ? `${passed}/${judged}` : "–"}
      </span>
      <span class="dots">
        {rows.slice(0, MOST_DOTS).map((row) => {
          const { word, sign } = STATUS[row.status]!;
          const words = `trial ${row.trial}: ${word}`;
          return (
            <a
              href={trialAddress(row.n)}
              class={`dot status-${row.status}`}
              tabIndex={-1}
              title={words}
              aria-label={words}
            >
              {sign}
            </a>
          );
        })}
        {rows.length > MOST_DOTS ? `+${rows.length - MOST_DOTS}` : null}
      </span>
    </span>
  );
}

/* "turn 3 ✗2, end ✗1" */
export function Where({ rows }: { rows: Row[] }) {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const failure = state.firstFailure(row);
    if (!failure || failure.at === null) continue;
    const place = failure.at === "end" ? "end" : `turn ${failure.at}`;
    const key = `${place} ${failure.error ? "!" : "✗"}`;
    counts.set(key, (counts.get(key) || 0) + 1);
  }
  if (!counts.size) return null;
  return (
    <span class="where" title="Where trials first failed">
      {[...counts].map(([key, number]) => key + number).join(", ")}
    </span>
  );
}

/* Why its trials failed, each reason once. */
export function Reasons({ rows }: { rows: Row[] }) {
  const counts = new Map<string, number>();
  for (const row of rows) {
    if (row.status === "PASS" || !row.reason) continue;
    if (rows.length > 1 && !state.hasFailed(row)) continue;
    counts.set(row.reason, (counts.get(row.reason) || 0) + 1);
  }
  const sorted = [...counts].sort((a, b) => b[1] - a[1]);
  const others = sorted.length - MOST_REASONS;
  return (
    <>
      {sorted.slice(0, MOST_REASONS).map(([reason, number]) => (
        <span class="reason">
          {rows.length > 1 ? <strong>{`${number} of ${rows.length} `}</strong> : null}
          {reason}
        </span>
      ))}
      {others > 0 ? <span class="reason">and {plural(others, "other reason")}</span> : null}
    </>
  );
}

/* How long it has failed, as far as past runs tell. */
export function FailingFor({ of, since }: { of: Group; since: FailingSince | null | undefined }) {
  if (!since || !/FAIL|FLAKY/.test(of.status)) return null;
  const day = time(since.started_at);
  return (
    <span class="tag" title={`failing since ${day}`}>
      {since.runs > 1 ? `failing for ${since.runs} runs` : "new"}
    </span>
  );
}

const KIND: Record<string, [string, string]> = {
  above: ["surely above ", "PASS"],
  below: ["surely below ", "FAIL"],
  undecided: ["undecided at ", "SKIP"],
};

/* What `--until-decided` came to, of a case of the analysis; `before`: what stands first. */
export function Decision(props: { of: CaseReliability | Decided | undefined; before?: string }) {
  const decision = props.of?.decision;
  if (!decision || !KIND[decision.verdict]) return null;
  const { verdict, threshold, error_rate: chance, trials, saved } = decision;
  // A threshold may have a part of a percent, as 0.995.
  const level = (share: number) => `${Math.round(share * 1000) / 10}\u202f%`;
  const open = verdict === "undecided" && (props.of as CaseReliability).not_run;
  const [word, status] = open ? ["not decided yet at ", "SKIP"] : KIND[verdict]!;
  const wrong = `said wrongly at most in ${level(chance)} of all runs`;
  const title = `Of a case at ${level(threshold)} itself it would be ${wrong}`;
  return (
    <span class="decision" title={title}>
      {props.before}
      <span class={`status-${status}`}>{word + level(threshold)}</span>{" "}
      <Aside>
        after {plural(trials, "trial")}
        {saved ? `, ${count(saved)} not needed` : null}
      </Aside>
    </span>
  );
}
