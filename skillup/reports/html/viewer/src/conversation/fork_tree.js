/* Cases that branch from one conversation: a tree, with links to the siblings. What several of them
   share and no case is by itself has a line of its own. */
import { el } from "../dom.js";
import { trialAddress } from "../route.js";
import { STATUS } from "../state.js";
import { statusSign } from "../table/rows.js";

export function family(detail) {
  const family = detail.family;
  if (!family || !family.shape || !(family.tree || []).length) return null;
  const trials = new Map(family.tree.map((one) => [one.job, one]));
  function branch(node) {
    const trial = trials.get(node.job);
    const children = node.children.map(branch);
    return el(
      "li",
      {},
      trial ? link(trial, detail.n) : el("span", { class: "shared-turns" }, node.name || "", " "),
      trial
        ? node.own_from > 1
          ? el("span", { class: "aside" }, ` its own from turn ${node.own_from}`)
          : null
        : el("span", { class: "aside" }, `${turnsText(node.shared)} shared`),
      children.length ? el("ul", {}, children) : null,
    );
  }
  return el(
    "nav",
    { class: "family", "aria-label": "Branches of one conversation" },
    el("h2", { class: "minor" }, "Branches of one conversation"),
    el("ul", {}, branch(family.shape)),
  );
}

const turnsText = ([first, last]) => (first === last ? `turn ${first}` : `turns ${first}–${last}`);

const link = (one, here) =>
  el(
    "a",
    {
      href: trialAddress(one.n),
      "aria-current": one.n === here ? "page" : null,
      class: "status-" + one.status,
    },
    statusSign(one.status),
    " ",
    one.case_id,
    el("span", { class: "visually-hidden" }, " " + STATUS[one.status].word),
  );
