/* Two trials of one case side by side: what was different where it came out otherwise. */
(function () {
  const held = (row) => !/^(NOT_HELD|NOT_NEEDED|RUNNING|WAITING)$/.test(row.status);

  /* The other trials of a case that were held, those that tell most first: with the same engine, with
     another verdict (one that passed beside one that failed), then the nearest. */
  SK.comparable = function (n) {
    const row = SK.page.index.rows.find((one) => one.n === n);
    if (!row || !held(row)) return [];
    const rank = (one) => [
      one.engine === row.engine && one.variant === row.variant ? 0 : 1,
      one.status === "PASS" && row.status !== "PASS" ? 0 : one.status !== row.status ? 1 : 2,
      Math.abs(one.n - n),
    ];
    return SK.trialsOf(row)
      .filter((one) => one.n !== n && held(one))
      .map((one) => [rank(one), one])
      .sort(([a], [b]) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2])
      .map(([, one]) => one);
  };

  SK.comparePage = async function (n, other, turn) {
    const { route } = SK.page;
    const rows = [n, other].map((one) => SK.page.index.rows.find((row) => row.n === one));
    if (rows.some((row) => !row) || !SK.trialsOf(rows[0]).includes(rows[1]))
      return SK.noDetail(rows[0] || null, new Error("there is no such other trial of this case"));
    const found = await Promise.all([n, other].map((one) => SK.detail(one).catch(() => null)));
    if (SK.page.route !== route) return null;
    const details = found.map((detail) => (detail && detail.turns && !detail.live ? detail : null));
    const all = SK.trialsOf(rows[0]);
    const alone = SK.trialAddress(n);
    const address = (part) => SK.compareAddress(n, other, part);
    SK.page.back = () => SK.go(alone);
    const page = SK.pair({
      details,
      address,
      top: [
        SK.el("p", { class: "way" }, SK.el("a", { href: alone }, `← ${SK.trialName(rows[0], all)} alone`)),
        SK.el("h1", {}, rows[0].case_id, " ", SK.el("span", { class: "case-title" }, "two trials compared")),
        SK.compareLinks(n, other),
      ].filter(Boolean),
      heads: rows.map((row, at) => [
        SK.el(
          "h2",
          { class: "minor" },
          "AB"[at] + " ",
          SK.el("a", { href: SK.trialAddress(row.n) }, SK.trialName(row, all)),
        ),
        SK.pairHead(details[at], SK.status(row.status)),
      ]),
    });
    const go = (by) => {
      const others = all.filter((row) => row.n !== n && held(row));
      const row = others[others.findIndex((one) => one.n === other) + by];
      if (row) SK.go(SK.compareAddress(n, row.n));
      else SK.announce("There is no other trial");
    };
    SK.page.keys = [
      ["]", "with the next trial", () => go(1)],
      ["[", "with the previous trial", () => go(-1)],
      ["x", "the other way round", () => SK.go(SK.compareAddress(other, n))],
      ...SK.page.keys,
    ];
    SK.page.shown = turn ? () => SK.jumpTo(page, turn) : null;
    document.title = `${rows[0].case_id}, two trials · ${SK.page.index.run.run_id} · skillup`;
    return page;
  };
})();
