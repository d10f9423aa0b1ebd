// What is on the page and hangs out of the window.
() => {
  const wide = document.documentElement.clientWidth;
  const scrolls = (node) => node.closest(".scroll, .trail, .visually-hidden, .skip-link, .chart, .bar");
  return [...document.querySelectorAll("body *")]
    .filter((node) => {
      if (!node.checkVisibility() || scrolls(node)) return false;
      const box = node.getBoundingClientRect();
      return box.width > 0 && (box.right > wide + 1 || box.left < -1);
    })
    .map((node) => `${node.tagName}.${node.className}`);
};
