/* Pictures among the files that a turn made or changed: from the data itself, never from an address. */
import { el } from "../dom.js";
import { count } from "../format.js";

const KINDS = /^image\/(png|jpeg|gif|webp)$/; // of pixels; no SVG, which is a document

export function images(images) {
  if (!images || !images.length) return null;
  return el("div", { class: "images" }, images.map(figure));
}

export const isShownImage = (image) => KINDS.test(image.type) && /^[A-Za-z0-9+/]+=*$/.test(image.data || "");

function figure(image) {
  const shown = isShownImage(image);
  return el(
    "figure",
    {},
    shown
      ? el("img", {
          src: `data:${image.type};base64,${image.data}`,
          alt: image.path,
          width: Number(image.width) || null,
          height: Number(image.height) || null,
          decoding: "async",
        })
      : null,
    el(
      "figcaption",
      {},
      el("code", {}, image.path),
      " ",
      el("span", { class: "aside" }, [measures(image), shown ? null : "not shown here"].filter(Boolean).join(", ")),
    ),
  );
}

const measures = ({ width, height, size }) =>
  [width ? `${count(width)} × ${count(height)}` : null, `${count(Math.ceil(size / 1000))} kB`]
    .filter(Boolean)
    .join(", ");
