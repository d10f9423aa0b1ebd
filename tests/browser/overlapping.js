// Boxes of text and controls that share a parent and share a place.
() => {
  const found = [];
  const flows = (node) =>
    node.checkVisibility() &&
    !node.matches(".visually-hidden, .skip-link, option") &&
    !/absolute|fixed|sticky/.test(getComputedStyle(node).position) &&
    getComputedStyle(node).display !== "inline" &&
    !node.closest("svg, .chart");
  for (const parent of document.querySelectorAll("body, body *")) {
    const boxes = [...parent.children]
      .filter(flows)
      .map((node) => [node, node.getBoundingClientRect()])
      .filter(([, box]) => box.width > 1 && box.height > 1);
    for (let i = 0; i < boxes.length; i++)
      for (let j = i + 1; j < Math.min(boxes.length, i + 12); j++) {
        const [[one, a], [other, b]] = [boxes[i], boxes[j]];
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1.5 && down > 1.5)
          found.push(`${one.tagName}.${one.className} on ${other.tagName}.${other.className}`);
      }
  }
  return [...new Set(found)];
};
