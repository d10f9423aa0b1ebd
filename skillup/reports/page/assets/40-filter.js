/* Which rows are shown, and in which order: plain functions of the rows and the filter.

   A filter: {q, status, tag, engine, variant, suite, sort}; status and tag may name several, joined
   by commas. `q`: words that must all be found in the row; "-word" must not be. */
(function () {
  const ORDER = { ERROR: 0, FAIL: 1, RUNNING: 2, SKIP: 3, NOT_HELD: 4, PASS: 5 };

  /* What the words are looked for in; made once per row. */
  function haystack(row) {
    if (row.haystack === undefined) {
      Object.defineProperty(row, "haystack", {
        value: [
          row.case_id,
          row.title,
          row.suite,
          row.engine,
          row.variant,
          row.reason,
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

  SK.matches = function (row, filter) {
    const statuses = list(filter.status);
    if (statuses.length && !statuses.includes(row.status) && !(row.flaky && statuses.includes("FLAKY")))
      return false;
    if (filter.tag && !list(filter.tag).every((tag) => (row.tags || []).includes(tag))) return false;
    for (const key of ["engine", "variant", "suite"])
      if (filter[key] && row[key] !== filter[key]) return false;
    return (filter.q || "")
      .toLowerCase()
      .split(/\s+/)
      .filter(Boolean)
      .every((word) =>
        word.length > 1 && word[0] === "-"
          ? !haystack(row).includes(word.slice(1))
          : haystack(row).includes(word),
      );
  };

  const BY = {
    case: (row) => row.case_id,
    status: (row) => ORDER[row.status],
    score: (row) => row.score,
    engine: (row) => row.engine,
    turns: (row) => row.turns.length,
    time: (row) => row.duration_ms,
    cost: (row) => row.cost_usd,
    tokens: (row) => row.tokens,
    trial: (row) => row.trial,
  };
  SK.SORTS = Object.keys(BY);

  /* Rows by `sort` ("score", "-score"); what is not known comes last, ties keep the plan's order. */
  SK.sorted = function (rows, sort) {
    const down = (sort || "").startsWith("-");
    const key = BY[down ? sort.slice(1) : sort];
    if (!key) return rows;
    const missing = (value) => value === null || value === undefined;
    return rows
      .map((row) => [key(row), row])
      .sort(([a], [b]) => {
        if (missing(a) || missing(b)) return missing(a) - missing(b);
        const order = typeof a === "string" ? a.localeCompare(b) : a - b;
        return down ? -order : order;
      })
      .map(([, row]) => row);
  };

  SK.shownRows = (rows, filter) =>
    SK.sorted(
      rows.filter((row) => SK.matches(row, filter)),
      filter.sort,
    );
})();
