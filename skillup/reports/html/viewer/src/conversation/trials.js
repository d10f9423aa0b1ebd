/* The other trials of a case, in little room: a few as links beside each other; more of them in a fold,
   whose line says which one is shown and how all came out. */
import { comparable } from "../compare/compare.js";
import { trialName, trialsOf } from "./reading_place.js";
import { el, fold as skFold } from "../dom.js";
import { count as skCount, plural } from "../format.js";
import { compareAddress, trialAddress } from "../route.js";
import { STATUS, page } from "../state.js";
import { statusSign } from "../table/rows.js";

const FEW = 6;

const link = (row, all, address, shown) =>
  el(
    "a",
    {
      href: address(row.n),
      class: "trial-link status-" + row.status,
      "aria-current": row.n === shown ? "page" : null,
    },
    statusSign(row.status),
    " ",
    trialName(row, all),
    el("span", { class: "visually-hidden" }, " " + STATUS[row.status].word),
  );

/* How many came out how: "● 3 ✗ 13". */
function counts(rows) {
  const found = new Map();
  for (const row of rows) found.set(row.status, (found.get(row.status) || 0) + 1);
  return [...found].map(([status, count]) => [
    " ",
    el(
      "span",
      { class: "status-" + status },
      statusSign(status),
      " " + skCount(count),
      el("span", { class: "visually-hidden" }, " " + STATUS[status].word),
    ),
  ]);
}

const fold = (summary, rows, one) =>
  skFold({ class: "more-trials" }, summary, () =>
    el("span", { class: "trials" }, rows.map(one)),
  );

/* All trials of a case, `n` among them. */
export function trialLinks(n) {
  const row = page.index.rows.find((one) => one.n === n);
  const all = row ? trialsOf(row) : [];
  if (all.length < 2) return null;
  const one = (other) => link(other, all, trialAddress, n);
  return el(
    "nav",
    { class: "trials", "aria-label": "Trials of this case" },
    all.length <= FEW
      ? all.map(one)
      : fold(
          [
            statusSign(row.status),
            " ",
            el("strong", {}, trialName(row, all)),
            ` of ${plural(all.length, "trial")}:`,
            counts(all),
          ],
          all,
          one,
        ),
  );
}

/* The trials to put beside it, the most telling first. `shown`: the one that is. */
export function compareLinks(n, shown = null) {
  const others = comparable(n);
  if (!others.length) return null;
  const all = trialsOf(others[0]);
  const one = (row) => link(row, all, (other) => compareAddress(n, other), shown);
  const first = others.find((row) => row.n === shown) || others[0];
  return el(
    "nav",
    { class: "trials compare", "aria-label": "Compare with another trial" },
    el("span", { class: "label" }, "compare with"),
    others.length <= FEW
      ? others.map(one)
      : [
          one(first),
          fold(
            `or one of ${skCount(others.length - 1)} others`,
            others.filter((row) => row !== first),
            one,
          ),
        ],
  );
}
