"use strict";
/*
 * A table whose rows open, below filters: which rows these leave, as `lens.hidden` has it.
 *
 * A row that others open from has a button; what is looked for opens it, too, as does a chosen row in it. Without filters
 * only the first rows show, until all are asked for.
 */
(() => {
  const section = document.querySelector(".filtered-table");
  if (!section) return;
  const shown = Number(section.querySelector("[data-shown]").dataset.shown);
  const rows = [...section.querySelectorAll("tbody tr")];
  const every = document.getElementById("every-row");
  const noneLeft = document.getElementById("none-left");
  const groups = [];
  for (const row of rows) {
    if (row.dataset.in === undefined) groups.push({ row, inner: [], isOpen: false, button: null });
    else groups.at(-1).inner.push(row);
  }
  let isWhole = groups.length <= shown + 3;

  for (const group of groups) {
    const cell = group.row.cells[0];
    if (!group.inner.length) continue;
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "opener" });
    button.append(...cell.childNodes);
    cell.append(button);
    button.addEventListener("click", () => {
      group.isOpen = button.getAttribute("aria-expanded") !== "true";
      show(lens.state);
    });
    group.button = button;
  }
  every.textContent = `All ${lens.format.count(groups.length, "row")}`;
  every.addEventListener("click", () => {
    isWhole = true;
    show(lens.state);
  });

  // What the text filter looks through: a row's own words, and those of the one that it opens from.
  lens.words = () => {
    const words = new Map();
    for (const { row, inner } of groups) {
      if (row.dataset.mark) words.set(row.dataset.mark, textOf(row));
      for (const one of inner) words.set(one.dataset.mark, `${textOf(row)} ${textOf(one)}`);
    }
    return words;
  };
  const textOf = (row) => [...row.cells].map((cell) => `${cell.textContent} ${cell.title}`).join(" ");

  function show(state) {
    const hidden = lens.hidden();
    const isFiltered = lens.filtered();
    let left = 0;
    for (const [place, group] of groups.entries()) {
      const { row, inner, button } = group;
      const kept = inner.filter((one) => !hidden[one.dataset.mark]);
      const isChosen = [row, ...inner].some((one) => one.dataset.mark && one.dataset.mark === state.mark);
      const isKept = inner.length ? kept.length > 0 : !hidden[row.dataset.mark];
      row.hidden = !isKept || !(isFiltered || isWhole || isChosen || place < shown);
      const isOpen = group.isOpen || state.q !== "" || (isChosen && row.dataset.mark !== state.mark);
      button?.setAttribute("aria-expanded", String(isOpen));
      for (const one of inner) one.hidden = row.hidden || !isOpen || Boolean(hidden[one.dataset.mark]);
      left += isKept && (inner.length || row.dataset.mark) ? 1 : 0;
    }
    noneLeft.hidden = left > 0;
    every.hidden = isFiltered || isWhole;
  }
  lens.on(show);
  addEventListener("beforeprint", () => {
    isWhole = true;
    show(lens.state);
  });
})();
