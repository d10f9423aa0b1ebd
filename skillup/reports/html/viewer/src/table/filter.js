/* Which trials are shown: plain functions of a row and the filter.

   A filter: {q, deep, status, tag, engine, variant, suite, sort}; status and tag may name several,
   joined by commas. `q`: words that must all be found in the row; "-word" must not be. With `deep`
   they are looked for in the conversation, too. Trials that were not needed are shown on request. */
import { conversationText } from "./search.js";

/* What the words are looked for in; made once per row. Not in what is said of all rows alike, such
   as "all checks passed": statuses and variants have choices of their own. */
function haystack(row) {
  if (row.haystack === undefined) {
    Object.defineProperty(row, "haystack", {
      value: [
        row.case_id,
        row.title,
        row.suite,
        row.engine,
        row.status === "FAIL" || row.status === "ERROR" ? row.reason : null,
        row.error_kind,
        ...(row.tags || []),
      ]
        .filter(Boolean)
        .join("\n")
        .toLowerCase(),
    });
  }
  return row.haystack;
}

const list = (text) => (text || "").split(",").filter(Boolean);

export function matches(row, filter) {
  const statuses = list(filter.status);
  if (row.status === "NOT_NEEDED" && !statuses.includes(row.status)) return false;
  if (statuses.length && !statuses.includes(row.status) && !(row.flaky && statuses.includes("FLAKY")))
    return false;
  if (filter.tag && !list(filter.tag).every((tag) => (row.tags || []).includes(tag))) return false;
  for (const key of ["engine", "variant", "suite"])
    if (filter[key] && row[key] !== filter[key]) return false;
  const words = (filter.q || "").toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return true;
  const said = filter.deep ? conversationText(row.n) : "";
  const has = (word) => haystack(row).includes(word) || said.includes(word);
  return words.every((word) => (word.length > 1 && word[0] === "-" ? !has(word.slice(1)) : has(word)));
}
