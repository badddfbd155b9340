// The comparison's controls: the level of the rooflines, the rows of the tables, what is isolated, and Escape.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);
  const rows = all(".kernels tr[data-k]");
  const lines = all(".changes li[data-k]");

  const isolate = (key) => lens.set({ k: key === lens.state.k ? "" : key });

  for (const radio of all(".levels input")) radio.addEventListener("change", () => lens.set({ level: radio.value }));
  byId("show-all").addEventListener("click", () => lens.set({ k: "" }));
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented && lens.state.k) lens.set({ k: "" });
  });
  for (const element of [...rows, ...lines]) {
    element.addEventListener("click", (event) => {
      if (!event.target.closest("a") && getSelection().isCollapsed) isolate(element.dataset.k);
    });
  }

  // One row of a table is in the order of the Tab key; arrows move from there, Enter isolates.
  const steps = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
  const shown = (table) => all("tr[data-k]", table);
  function reach(row) {
    for (const other of shown(row.closest("table"))) other.tabIndex = -1;
    row.tabIndex = 0;
  }
  for (const table of all(".kernels")) {
    if (shown(table).length) reach(shown(table)[0]);
    table.addEventListener("keydown", (event) => {
      const row = event.target.closest("tr[data-k]");
      if (row !== event.target || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key in steps) {
        const list = shown(table);
        const next = list[Math.min(list.length - 1, Math.max(0, list.indexOf(row) + steps[event.key]))];
        reach(next);
        next.focus();
      } else if (event.key === "Enter" || event.key === " ") {
        isolate(row.dataset.k);
      } else return;
      event.preventDefault();
    });
    for (const head of all("th[data-key]", table)) sortable(table, head);
  }

  // A header sorts the kernels of each part of its table; a third press brings the first order back.
  function sortable(table, head) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const words = head.dataset.key === "name";
      const ways = words ? ["ascending", "descending", ""] : ["descending", "ascending", ""];
      const way = ways[(ways.indexOf(head.getAttribute("aria-sort") || "") + 1) % ways.length];
      for (const other of all("th[aria-sort]", table)) other.removeAttribute("aria-sort");
      if (way) head.setAttribute("aria-sort", way);
      for (const body of table.tBodies) order(body, way ? head.cellIndex : -1, words, way === "descending" ? -1 : 1);
    });
  }
  function order(body, column, words, sign) {
    const value = (row) => row.cells[column].dataset.order;
    const first = (row) => Number(row.dataset.k.slice(1));
    const compare = (a, b) => {
      if (column < 0) return first(a) - first(b);
      const by = words ? value(a).localeCompare(value(b)) : Number(value(a)) - Number(value(b));
      return sign * by || first(a) - first(b);
    };
    body.append(...all("tr[data-k]", body).sort(compare));
  }

  function show(state, before) {
    for (const fieldset of all(".levels")) {
      const radios = all("input", fieldset);
      const chosen = radios.find((one) => one.value === state.level) || radios.find((one) => one.defaultChecked);
      if (chosen) chosen.checked = true;
    }
    for (const row of rows) {
      const mine = row.dataset.k === state.k;
      if (mine) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
      row.classList.toggle("faint", state.k !== "" && !mine);
    }
    for (const line of lines) line.classList.toggle("current", line.dataset.k === state.k);
    showIsolated();
    if (state.k && (state.k !== before.k || state === before)) reach(rows.find((row) => row.dataset.k === state.k));
  }

  function showIsolated() {
    const item = lens.picked();
    const bar = byId("isolated");
    bar.hidden = !item;
    if (!item) return;
    const row = byId(item.k);
    bar.querySelector(".name").textContent = item.name;
    bar.querySelector(".name").href = `#${item.k}`;
    const story = row.querySelector(".story")?.textContent || row.querySelector(".difference").innerText.replace("\n", ", ");
    bar.querySelector(".sentence-line").textContent = story;
  }
  lens.on(show);
})();
