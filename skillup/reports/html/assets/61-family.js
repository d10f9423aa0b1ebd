/* Cases that branch from one conversation: a tree, with links to the siblings. What several of them
   share and no case is by itself has a line of its own. */
(function () {
  SK.family = function (detail) {
    const family = detail.family;
    if (!family || !family.shape || !(family.tree || []).length) return null;
    const trials = new Map(family.tree.map((one) => [one.job, one]));
    function branch(node) {
      const trial = trials.get(node.job);
      const children = node.children.map(branch);
      return SK.el(
        "li",
        {},
        trial ? link(trial, detail.n) : SK.el("span", { class: "shared-turns" }, node.name || "", " "),
        trial
          ? node.own_from > 1
            ? SK.el("span", { class: "aside" }, ` its own from turn ${node.own_from}`)
            : null
          : SK.el("span", { class: "aside" }, `${turnsText(node.shared)} shared`),
        children.length ? SK.el("ul", {}, children) : null,
      );
    }
    return SK.el(
      "nav",
      { class: "family", "aria-label": "Branches of one conversation" },
      SK.el("h2", { class: "minor" }, "Branches of one conversation"),
      SK.el("ul", {}, branch(family.shape)),
    );
  };

  const turnsText = ([first, last]) => (first === last ? `turn ${first}` : `turns ${first}–${last}`);

  const link = (one, here) =>
    SK.el(
      "a",
      {
        href: SK.trialAddress(one.n),
        "aria-current": one.n === here ? "page" : null,
        class: "status-" + one.status,
      },
      SK.statusSign(one.status),
      " ",
      one.case_id,
      SK.el("span", { class: "visually-hidden" }, " " + SK.STATUS[one.status].word),
    );
})();
