// What if another GPU ran this: words and cells were made with the page, here those of the chosen GPU are put in place.
(() => {
  const section = document.getElementById("what-if");
  const gpus = lens.data("what-if-data");
  if (!section || !gpus) return;

  const find = (selector) => section.querySelector(selector);
  const select = find("#what-if-gpu");
  const ridges = find("#what-if-ridges tbody");
  const body = find("#what-if-kernels tbody");
  const rows = [...body.rows];
  const chosen = () => (Object.hasOwn(gpus, lens.state.datasheet) ? lens.state.datasheet : "");

  function make(tag, text, className) {
    const element = document.createElement(tag);
    if (text) element.textContent = text;
    if (className) element.className = className;
    return element;
  }

  // Ridges: the chosen GPU's row is marked where it stands already, else it stands below those profiled here.
  function ridgeRow(id) {
    const [name, bandwidth, values, changes] = gpus[id].row;
    const row = make("tr", "", "added");
    row.dataset.gpu = id;
    const head = make("th", name);
    head.scope = "row";
    row.append(head, make("td", bandwidth, "n"));
    for (const [ridge, peak] of values) {
      const cell = make("td", "", "n");
      cell.append(make("b", ridge), " ", make("small", peak));
      row.append(cell);
    }
    const last = make("td", changes[0], "n");
    if (changes[1]) last.append(" ", make("small", changes[1]));
    row.append(last);
    return row;
  }
  function showRidge(id) {
    for (const row of [...ridges.rows]) {
      if (row.classList.contains("added")) row.remove();
      else row.classList.remove("chosen");
    }
    if (!id) return;
    let row = [...ridges.rows].find((one) => one.dataset.gpu === id);
    if (!row) {
      row = ridgeRow(id);
      const here = [...ridges.rows].filter((one) => "here" in one.dataset);
      here[here.length - 1].after(row);
    }
    row.classList.add("chosen");
  }

  function showAnswer(id) {
    find("#what-if-answer").hidden = !id;
    if (!id) return;
    find("#what-if-name").textContent = gpus[id].row[0];
    const [head, text, aside] = gpus[id].words;
    find("#what-if-head").textContent = head;
    find("#what-if-body").textContent = text;
    find("#what-if-aside").textContent = aside;
    find("#what-if-answer .pill").hidden = gpus[id].cells.length === 0;
  }

  // Kernels: those that change side come first, each part in order of time.
  function fill(row, cell) {
    const [letter, lower, factor] = cell.split("|");
    const side = letter && (letter === "m" ? "memory" : "compute");
    const there = row.querySelector(".there");
    const changed = side !== "" && side !== row.dataset.side;
    there.replaceChildren(side ? find(`#what-if-${side}`).content.cloneNode(true) : "not predicted");
    if (changed) there.append(" ", make("span", "changes", "changes"));
    row.className = changed ? "changed" : "";
    row.querySelector(".lower").textContent = lower || "\u2013";
    row.querySelector(".factor").textContent = factor || "\u2013";
    return changed;
  }
  function showKernels(id) {
    const cells = id ? gpus[id].cells : [];
    find("#what-if-moves").hidden = cells.length === 0;
    if (cells.length === 0) return;
    const changed = rows.filter((row, i) => fill(row, cells[i]));
    body.append(...changed, ...rows.filter((row) => !changed.includes(row)));
  }

  function mark() {
    const picked = lens.picked();
    const hidden = lens.hidden();
    for (const row of rows) {
      const item = lens.items.get(row.dataset.k);
      row.hidden = Boolean(hidden[row.dataset.k]);
      if (picked && item && item.g === picked.g) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }

  select.addEventListener("change", () => lens.set({ datasheet: select.value }));
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-k]");
    if (row) lens.set({ k: row.dataset.k });
  });

  let shown = null;
  lens.on(() => {
    const id = chosen();
    if (id !== shown) {
      shown = id;
      select.value = id;
      showRidge(id);
      showAnswer(id);
      showKernels(id);
    }
    mark();
  });
})();
