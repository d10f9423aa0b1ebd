/* Two trials of one case side by side: what was different where it came out otherwise. */
import { pair, pairHead } from "./pair.js";
import { jumpTo, noDetail } from "../conversation/case.js";
import { trialName, trialsOf } from "../conversation/reading_place.js";
import { compareLinks } from "../conversation/trials.js";
import { detail as skDetail } from "../data.js";
import { announce, el } from "../dom.js";
import { compareAddress, go as skGo, trialAddress } from "../route.js";
import { page as skPage } from "../state.js";
import { status } from "../table/rows.js";

const held = (row) => !/^(NOT_HELD|NOT_NEEDED|RUNNING|WAITING)$/.test(row.status);

/* The other trials of a case that were held, those that tell most first: with the same engine, with
   another verdict (one that passed beside one that failed), then the nearest. */
export function comparable(n) {
  const row = skPage.index.rows.find((one) => one.n === n);
  if (!row || !held(row)) return [];
  const rank = (one) => [
    one.engine === row.engine && one.variant === row.variant ? 0 : 1,
    one.status === "PASS" && row.status !== "PASS" ? 0 : one.status !== row.status ? 1 : 2,
    Math.abs(one.n - n),
  ];
  return trialsOf(row)
    .filter((one) => one.n !== n && held(one))
    .map((one) => [rank(one), one])
    .sort(([a], [b]) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2])
    .map(([, one]) => one);
}

export async function comparePage(n, other, turn) {
  const { route } = skPage;
  const rows = [n, other].map((one) => skPage.index.rows.find((row) => row.n === one));
  if (rows.some((row) => !row) || !trialsOf(rows[0]).includes(rows[1]))
    return noDetail(rows[0] || null, new Error("there is no such other trial of this case"));
  const found = await Promise.all([n, other].map((one) => skDetail(one).catch(() => null)));
  if (skPage.route !== route) return null;
  const details = found.map((detail) => (detail && detail.turns && !detail.live ? detail : null));
  const all = trialsOf(rows[0]);
  const alone = trialAddress(n);
  const address = (part) => compareAddress(n, other, part);
  skPage.back = () => skGo(alone);
  const page = pair({
    details,
    address,
    top: [
      el("p", { class: "way" }, el("a", { href: alone }, `← ${trialName(rows[0], all)} alone`)),
      el("h1", {}, rows[0].case_id, " ", el("span", { class: "case-title" }, "two trials compared")),
      compareLinks(n, other),
    ].filter(Boolean),
    heads: rows.map((row, at) => [
      el(
        "h2",
        { class: "minor" },
        "AB"[at] + " ",
        el("a", { href: trialAddress(row.n) }, trialName(row, all)),
      ),
      pairHead(details[at], status(row.status)),
    ]),
  });
  const go = (by) => {
    const others = all.filter((row) => row.n !== n && held(row));
    const row = others[others.findIndex((one) => one.n === other) + by];
    if (row) skGo(compareAddress(n, row.n));
    else announce("There is no other trial");
  };
  skPage.keys = [
    ["]", "with the next trial", () => go(1)],
    ["[", "with the previous trial", () => go(-1)],
    ["x", "the other way round", () => skGo(compareAddress(other, n))],
    ...skPage.keys,
  ];
  skPage.shown = turn ? () => jumpTo(page, turn) : null;
  document.title = `${rows[0].case_id}, two trials · ${skPage.index.run.run_id} · skillup`;
  return page;
}
