// The map of the program: a range zooms and filters, a kernel is isolated.
(() => {
  const strips = [...document.querySelectorAll(".map .strip")];
  for (const strip of strips) {
    strip.addEventListener("click", (event) => {
      const cell = event.target.closest(".cell");
      const { range } = strip.dataset;
      if (!cell) lens.set({ range: lens.state.range === range ? "" : range });
      else if (event.ctrlKey || event.metaKey) lens.join(cell.dataset.k);
      else lens.set({ k: lens.state.k === cell.dataset.k ? "" : cell.dataset.k });
    });
  }
  lens.on((state) => {
    const picked = lens.picked();
    for (const strip of strips) {
      strip.hidden = state.range !== "" && state.range !== strip.dataset.range;
      for (const cell of strip.querySelectorAll(".cell")) {
        cell.classList.toggle("faint", picked !== null && picked.g !== lens.items.get(cell.dataset.k)?.g);
      }
    }
  });
})();
