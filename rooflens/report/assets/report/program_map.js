// The map: a click on a program or range filters everything by it, one on a kernel by that kernel; a second one lifts it.
(() => {
  const NAME_CHARS = 40;
  const note = document.getElementById("map-note");
  const strips = [...document.querySelectorAll(".map .strip")];
  for (const strip of strips) {
    strip.addEventListener("click", (event) => {
      const cell = event.target.closest(".cell[data-k]");
      const { filter: choice, value } = strip.dataset;
      if (!cell && !choice) return;
      if (!cell) lens.set({ [choice]: lens.state[choice] === value ? "" : value });
      else if (event.ctrlKey || event.metaKey) lens.join(cell.dataset.k);
      else lens.set({ k: "", only: lens.state.only === cell.dataset.g ? "" : cell.dataset.g });
    });
  }
  lens.on(() => {
    const hidden = lens.hidden();
    const left = new Set([...lens.items.values()].filter((item) => !hidden[item.k]).map((item) => item.g));
    const picked = lens.picked();
    const chosen = strips.find(({ dataset: { filter, value } }) => filter && lens.state[filter] === value)?.dataset.value
      || [...lens.items.values()].find((item) => item.g !== "" && item.g === lens.state.only)?.name;
    if (note) note.hidden = !chosen;
    if (note && chosen) note.textContent = `Only ${lens.format.cut(chosen, NAME_CHARS)}: click it again, or press Esc, to show all.`;
    for (const strip of strips) {
      const { filter: choice, value } = strip.dataset;
      const isOut = choice !== "" && lens.state[choice] !== "" && lens.state[choice] !== value;
      for (const cell of strip.querySelectorAll(".cell")) {
        const { g } = cell.dataset;
        const isOther = picked !== null && picked.g !== g;
        cell.classList.toggle("faint", isOut || isOther || (g !== undefined && !left.has(g)));
      }
    }
  });
})();
