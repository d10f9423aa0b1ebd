/* Two runs side by side: the flips as a table; and two conversations in columns, aligned by turn: a
   pair of two runs, or two trials of one case. */
import type { ComponentChildren } from "preact";
import type { Side, SideRow, SideRun, Sides } from "../dist/types";
import type { Trial } from "./data";
import { Ending, ErrorBox, Jump, Opening, TurnView } from "./conversation";
import { turnPairs, type TurnPair } from "./text/diff";
import { Aside, Fold, SignAndWord, Status, TableHead } from "./dom";
import { asSentence, known, plural, score, time } from "./text/format";
import { address, back, go, isBaseline, page, rowOf } from "./state";
import { trialAddress, trialName, trialsOf } from "./state";
import { CompareLinks, NoTrial } from "./trial";

const CHANGE: Record<string, [string, string, string]> = {
  regressed: ["▼", "regressed", "FAIL"],
  recovered: ["▲", "recovered", "PASS"],
  fewer_passes: ["▽", "fewer passes", "SKIP"],
  more_passes: ["△", "more passes", "NOT_RUN"],
  not_run: ["!", "no verdict", "ERROR"],
  skipped: ["–", "skipped", "SKIP"],
  only_in_a: ["A", "only in A", "NOT_RUN"],
  only_in_b: ["B", "only in B", "NOT_RUN"],
  same: ["=", "same", "NOT_RUN"],
};

/* "● passed 8/8", "◐ flaky 6/8", "✗ failed 0/8": how many of the trials passed. */
function SideText({ side }: { side: Side | null }) {
  if (!side) return <Aside>–</Aside>;
  const { judged, passed } = side;
  return (
    <span>
      <Status status={passed > 0 && passed < judged ? "FLAKY" : side.status} />
      {judged > 1 ? ` ${passed}/${judged}` : null}
      {known(side.score) ? <Aside> {score(side.score)}</Aside> : null}
    </span>
  );
}

const RunText = ({ run, letter }: { run: SideRun; letter: string }) => (
  <span>
    <strong>{letter}</strong> <code>{run.run_id}</code>
    <Aside> {time(run.started_at)}</Aside>
  </span>
);

const Lines = ({ lines }: { lines: string[] }) => (
  <ul class="plain sides-summary">
    {lines.map((line) => (
      <li>{asSentence(line)}</li>
    ))}
  </ul>
);

/* What changed since the nights before, and what is sure of them. */
export const NightsView = ({ lines }: { lines: string[] }) => (
  <section class="sides" aria-labelledby="nights-title">
    <h2 id="nights-title">What changed since the nights before</h2>
    <Lines lines={lines} />
  </section>
);

/* The part of the first page that compares. */
export function SidesView({ sides }: { sides: Sides }) {
  const numbered = sides.rows.map((row, at) => ({ row, at }));
  const [changed, same] = [false, true].map((alike) =>
    numbered.filter(({ row }) => (row.change === "same") === alike),
  ) as [Numbered[], Numbered[]];
  const table = (rows: Numbered[]) => <SidesTable rows={rows} />;
  return (
    <section class="sides" aria-labelledby="sides-title">
      <h2 id="sides-title">Two runs side by side</h2>
      <p class="sides-runs">
        <RunText run={sides.a} letter="A" /> → <RunText run={sides.b} letter="B" />
      </p>
      <h3 class="minor">What changed</h3>
      <Lines lines={sides.changed} />
      <Lines lines={sides.summary} />
      <p class="aside">A: {sides.reference}</p>
      {changed.length ? table(changed) : <p class="nothing">No case came out otherwise.</p>}
      {same.length ? (
        <Fold class="same" summary={`The same (${same.length})`} inside={() => table(same)} />
      ) : null}
    </section>
  );
}

type Numbered = { row: SideRow; at: number };

const SidesTable = ({ rows }: { rows: Numbered[] }) => (
  <div class="scroll" tabIndex={0} role="region" aria-label="Cases in both runs">
    <table class="cases-table sides-table">
      <TableHead
        heads={["Change", "Case", "A", "B", "Engine"]}
        caption="How each case fared in both runs"
      />
      <tbody>
        {rows.map(({ row, at }) => (
          <SideLine key={at} row={row} at={at} />
        ))}
      </tbody>
    </table>
  </div>
);

function SideLine({ row, at }: Numbered) {
  const [sign, word, status] = CHANGE[row.change] || ["·", row.change, "NOT_RUN"];
  const opens = known(row.b?.n) || known(row.a?.n);
  return (
    <tr data-change={row.change}>
      <td>
        <SignAndWord sign={sign} word={word} status={status} />
        {row.how_sure ? <span class="where">{row.how_sure}</span> : null}
      </td>
      <th scope="row">
        {opens ? (
          <a href={address(`pair/${at}`)} class="case-link">
            {row.case_id}
          </a>
        ) : (
          row.case_id
        )}
        {isBaseline(row) ? <Aside> without the skill</Aside> : null}
      </th>
      <td>
        <SideText side={row.a} />
      </td>
      <td>
        <SideText side={row.b} />
      </td>
      <td>{row.engine}</td>
    </tr>
  );
}

/* Under view: which other run to put beside this one. */
export function AgainstChoice() {
  const others = (page.runs || []).filter((run) => run.id !== page.runId && !run.problem);
  if (page.mode !== "view" || !others.length) return null;
  const choose = (value: string) => go(address("", { against: value || null }));
  return (
    <p class="beside">
      <label for="against">Put beside: </label>
      <select
        id="against"
        value={page.filter.against || ""}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        <option value="">no other run</option>
        {others.map((run) => (
          <option value={run.id}>
            {time(run.started_at)} {run.id}
          </option>
        ))}
      </select>
    </p>
  );
}

interface Column {
  title: ComponentChildren;
  status: ComponentChildren;
  detail: Trial | null;
}

function Pair({ top, columns }: { top: ComponentChildren; columns: [Column, Column] }) {
  const details = columns.map((column) => column.detail);
  const pairs = turnPairs(details[0]!, details[1]!);
  const differing = pairs.filter((pair) => pair.what.length);
  const first = differing[0];
  const all = details.every(Boolean);
  const both = (Part: typeof Opening) => (
    <div class="pair-row">
      {details.map((detail, at) => (
        <div class={`pair-cell side-${"AB"[at]}`}>
          <div>{detail && <Part detail={detail} />}</div>
        </div>
      ))}
    </div>
  );
  return (
    <article class="case pair">
      {top}
      <div class="pair-row pair-heads">
        {columns.map(({ title, status, detail }) => (
          <div>
            <h2 class="minor">{title}</h2>
            <p class="verdict">
              {status}
              {detail?.grade ? ` ${detail.grade.reason}` : null}
            </p>
            {detail ? (
              <ErrorBox error={detail.error} title="The trial could not run" />
            ) : (
              <p class="notice">Its conversation is not in this report.</p>
            )}
          </div>
        ))}
      </div>
      {!all ? null : first ? (
        <p class="first-difference">
          First difference:{" "}
          <Jump n={details[0]!.n} part={first.number} text={`turn ${first.number}`} />
          {` (${first.what.join(", ")})`}
          {differing.length > 1 ? <Aside>; {plural(differing.length, "turn")} differ</Aside> : null}
        </p>
      ) : (
        <p class="first-difference">Messages, tool calls and answers are the same.</p>
      )}
      {both(Opening)}
      {pairs.map((pair) => (
        <PairRow key={pair.number} pair={pair} details={details} />
      ))}
      {both(Ending)}
    </article>
  );
}

function PairRow({ pair, details }: { pair: TurnPair; details: Array<Trial | null> }) {
  return (
    <div class={`pair-row${pair.what.length ? " differing" : ""}`}>
      {pair.what.length ? <p class="difference">differs: {pair.what.join(", ")}</p> : null}
      {pair.turns.map((turn, at) => (
        <div class={`pair-cell side-${"AB"[at]}`}>
          {turn ? (
            <TurnView turn={turn} detail={details[at]!} differing={pair.words[at]!} />
          ) : (
            <p class="aside nothing">–</p>
          )}
        </div>
      ))}
    </div>
  );
}

/* Two trials of one case. */
export function ComparePage({ details }: { details: Array<Trial | null> }) {
  const { n, other } = page.route;
  const rows = [rowOf(n), rowOf(other)];
  const [row, beside] = rows;
  if (!row || !beside || !trialsOf(row).includes(beside))
    return <NoTrial row={row || null} problem="there is no such other trial of this case" />;
  const all = trialsOf(row);
  const columns = [row, beside].map((one, at): Column => ({
    title: (
      <>
        {"AB"[at]} <a href={trialAddress(one.n)}>{trialName(one, all)}</a>
      </>
    ),
    status: <Status status={one.status} />,
    detail: details[at] || null,
  }));
  const top = (
    <>
      <p class="way">
        <a href={trialAddress(n)}>← {trialName(row, all)} alone</a>
      </p>
      <h1>
        {row.case_id} <span class="case-title">two trials compared</span>
      </h1>
      <CompareLinks n={row.n} shown={other} />
    </>
  );
  return <Pair top={top} columns={columns as [Column, Column]} />;
}

/* Both conversations of a case, in two runs. */
export function PairPage({ details }: { details: Array<Trial | null> }) {
  const sides = page.index?.sides;
  const row = sides?.rows[page.route.n ?? -1];
  if (!sides || !row) return <NoTrial row={null} problem="there is no such pair" />;
  const column = (letter: "a" | "b", at: number): Column => ({
    title: <RunText run={sides[letter]} letter={letter.toUpperCase()} />,
    status: <SideText side={row[letter]} />,
    detail: details[at] || null,
  });
  const top = (
    <>
      <p class="way">
        <a href={back()}>← Both runs</a>
      </p>
      <h1>
        {row.case_id} <span class="case-title">{(CHANGE[row.change] || ["", row.change])[1]}</span>
      </h1>
      {row.case_changed ? (
        <p class="notice case-changed">The case was changed between the two runs.</p>
      ) : null}
    </>
  );
  return <Pair top={top} columns={[column("a", 0), column("b", 1)]} />;
}
