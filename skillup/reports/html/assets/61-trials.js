/* The other trials of a case, in little room: a few as links beside each other; more of them in a fold,
   whose line says which one is shown and how all came out. */
(function () {
  const FEW = 6;

  const link = (row, all, address, shown) =>
    SK.el(
      "a",
      {
        href: address(row.n),
        class: "trial-link status-" + row.status,
        "aria-current": row.n === shown ? "page" : null,
      },
      SK.statusSign(row.status),
      " ",
      SK.trialName(row, all),
      SK.el("span", { class: "visually-hidden" }, " " + SK.STATUS[row.status].word),
    );

  /* How many came out how: "● 3 ✗ 13". */
  function counts(rows) {
    const found = new Map();
    for (const row of rows) found.set(row.status, (found.get(row.status) || 0) + 1);
    return [...found].map(([status, count]) => [
      " ",
      SK.el(
        "span",
        { class: "status-" + status },
        SK.statusSign(status),
        " " + SK.count(count),
        SK.el("span", { class: "visually-hidden" }, " " + SK.STATUS[status].word),
      ),
    ]);
  }

  const fold = (summary, rows, one) =>
    SK.fold({ class: "more-trials" }, summary, () =>
      SK.el("span", { class: "trials" }, rows.map(one)),
    );

  /* All trials of a case, `n` among them. */
  SK.trialLinks = function (n) {
    const row = SK.page.index.rows.find((one) => one.n === n);
    const all = row ? SK.trialsOf(row) : [];
    if (all.length < 2) return null;
    const one = (other) => link(other, all, SK.trialAddress, n);
    return SK.el(
      "nav",
      { class: "trials", "aria-label": "Trials of this case" },
      all.length <= FEW
        ? all.map(one)
        : fold(
            [
              SK.statusSign(row.status),
              " ",
              SK.el("strong", {}, SK.trialName(row, all)),
              ` of ${SK.plural(all.length, "trial")}:`,
              counts(all),
            ],
            all,
            one,
          ),
    );
  };

  /* The trials to put beside it, the most telling first. `shown`: the one that is. */
  SK.compareLinks = function (n, shown = null) {
    const others = SK.comparable(n);
    if (!others.length) return null;
    const all = SK.trialsOf(others[0]);
    const one = (row) => link(row, all, (other) => SK.compareAddress(n, other), shown);
    const first = others.find((row) => row.n === shown) || others[0];
    return SK.el(
      "nav",
      { class: "trials compare", "aria-label": "Compare with another trial" },
      SK.el("span", { class: "label" }, "compare with"),
      others.length <= FEW
        ? others.map(one)
        : [
            one(first),
            fold(
              `or one of ${SK.count(others.length - 1)} others`,
              others.filter((row) => row !== first),
              one,
            ),
          ],
    );
  };
})();
