/* Pictures among the files that a turn made or changed: from the data itself, never from an address. */
(function () {
  const KINDS = /^image\/(png|jpeg|gif|webp)$/; // of pixels; no SVG, which is a document

  SK.images = function (images) {
    if (!images || !images.length) return null;
    return SK.el("div", { class: "images" }, images.map(figure));
  };

  SK.isShownImage = (image) => KINDS.test(image.type) && /^[A-Za-z0-9+/]+=*$/.test(image.data || "");

  function figure(image) {
    const shown = SK.isShownImage(image);
    return SK.el(
      "figure",
      {},
      shown
        ? SK.el("img", {
            src: `data:${image.type};base64,${image.data}`,
            alt: image.path,
            width: Number(image.width) || null,
            height: Number(image.height) || null,
            decoding: "async",
          })
        : null,
      SK.el(
        "figcaption",
        {},
        SK.el("code", {}, image.path),
        " ",
        SK.el("span", { class: "aside" }, [measures(image), shown ? null : "not shown here"].filter(Boolean).join(", ")),
      ),
    );
  }

  const measures = ({ width, height, size }) =>
    [width ? `${SK.count(width)} × ${SK.count(height)}` : null, `${SK.count(Math.ceil(size / 1000))} kB`]
      .filter(Boolean)
      .join(", ");
})();
