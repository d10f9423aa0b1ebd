/* Cases that branch from one conversation: a tree, with links to the siblings. */
(function () {
  SK.family = function (detail) {
    const family = detail.family;
    if (!family || !(family.tree || []).length) return null;
    const here = new Set(family.tree.map((one) => one.n));
    const below = (n) =>
      family.tree.filter((one) =>
        n === null
          ? one.parent_n === null || one.parent_n === undefined || !here.has(one.parent_n)
          : one.parent_n === n && one.n !== n,
      );
    const seen = new Set();
    function branch(one) {
      if (seen.has(one.n)) return null;
      seen.add(one.n);
      const children = below(one.n).map(branch).filter(Boolean);
      return SK.el(
        "li",
        {},
        SK.el(
          "a",
          {
            href: SK.trialAddress(one.n),
            "aria-current": one.n === detail.n ? "page" : null,
            class: "status-" + one.status,
          },
          SK.statusSign(one.status),
          " ",
          one.case_id,
          SK.el("span", { class: "visually-hidden" }, " " + SK.STATUS[one.status].word),
        ),
        one.forks_at > 1 ? SK.el("span", { class: "aside" }, ` its own from turn ${one.forks_at}`) : null,
        children.length ? SK.el("ul", {}, children) : null,
      );
    }
    return SK.el(
      "nav",
      { class: "family", "aria-label": "Branches of one conversation" },
      SK.el("h2", { class: "minor" }, "Branches of one conversation"),
      SK.el("ul", {}, below(null).map(branch)),
    );
  };
})();
