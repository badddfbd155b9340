// The list of kernels: DataTables sorts, pages and hides its rows; columns come and go; the keyboard walks the rows.
// lens.list: what other scripts ask of it; null where the page has no list.
lens.list = (() => {
  const PAGE_FROM = 60;
  const PAGE_ROWS = 50;
  const element = document.getElementById("kernels-table");
  const rows = element ? [...element.tBodies[0].rows] : [];
  if (rows.length === 0) return null;
  const keysOf = (row) => (row.dataset.launches || row.dataset.k).split(" ");
  const rowByKey = new Map(rows.flatMap((row) => keysOf(row).map((key) => [key, row])));
  const linkOf = (row) => row.querySelector("a");
  for (const row of rows) Object.assign(linkOf(row), { title: row.cells[0].dataset.order, tabIndex: -1 });

  // What is missing stands last, whichever way the rest is sorted.
  const known = (way) => (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    return way * (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
  };
  DataTable.type("measure", {
    order: { pre: (value) => (value === "" ? "" : Number(value)), asc: known(1), desc: known(-1) },
  });
  DataTable.type("words", { order: { asc: known(1), desc: known(-1) } });
  DataTable.ext.errMode = "throw";

  const headRow = element.tHead.rows[0];
  let heads = [...headRow.cells];
  const columnOf = (key) => heads.findIndex((head) => head.dataset.key === key);
  const columnFor = (head) => {
    const words = head.classList.contains("w");
    // Filtering is the page's own: DataTables would parse the names of kernels as HTML to search them.
    const orderSequence = words ? ["asc", "desc"] : ["desc", "asc"];
    return { type: words ? "words" : "measure", orderSequence, searchable: false };
  };
  const ordered = (sort) => {
    need([sort.replace(/^-/, "")]);
    const column = columnOf(sort.replace(/^-/, ""));
    return column < 0 ? [[Math.max(columnOf("time"), 0), "desc"]] : [[column, sort.startsWith("-") ? "desc" : "asc"]];
  };
  const paged = rows.length > PAGE_FROM;
  const isLeft = (row) => keysOf(row).some((key) => !lens.hidden()[key]);
  let table = null;
  function build() {
    table = new DataTable(element, {
      autoWidth: false, columns: heads.map(columnFor), info: false, order: ordered(lens.state.sort), orderClasses: false,
      orderMulti: false, pageLength: PAGE_ROWS, paging: paged, processing: false,
      layout: { topStart: null, topEnd: null, bottomStart: null, bottomEnd: paged ? "paging" : null },
      language: {
        emptyTable: "", zeroRecords: "No kernel passes these filters.",
        paginate: { previous: "Previous", next: "Next" },
      },
    });
    table.search.fixed("lens", (_text, _data, index) => isLeft(table.row(index).node()));
    table.on("order", () => {
      const [[column, way]] = table.order();
      const named = `${way === "desc" ? "-" : ""}${heads[column].dataset.key}`;
      const sort = named === "-time" ? "" : named;
      if (sort !== lens.state.sort) lens.set({ sort });
    });
    table.on("draw", keepReachable);
  }

  // Columns that are not there from the start wait as data, until one of them is shown, sorted by or exported.
  const waiting = new Map();
  for (const head of document.getElementById("waiting-columns")?.content.children || []) waiting.set(head.dataset.key, head);
  const cellsOf = lens.data("waiting-cells");
  function need(keys) {
    if (keys.some((key) => waiting.has(key))) complete();
  }
  function complete() {
    if (waiting.size === 0) return;
    const reopen = table ? lens.cards.shut() : () => {};
    table?.off("order").off("draw").destroy();
    for (const [key, head] of waiting) {
      const place = Number(head.dataset.place);
      headRow.insertBefore(head, headRow.cells[place]);
      for (const [i, row] of rows.entries()) row.insertBefore(cellOf(cellsOf[key][i], head), row.cells[place]);
    }
    waiting.clear();
    heads = [...headRow.cells];
    if (!table) return;
    build();
    table.draw();
    reopen();
  }
  const waitingWords = () => [...waiting.keys()].flatMap((key) => rows.map((row, i) => [row.dataset.k, cellsOf[key][i][1] || ""]));
  function cellOf([raw, text, also], head) {
    const cell = document.createElement("td");
    cell.hidden = true;
    cell.className = head.className;
    cell.dataset.order = raw || "";
    if (also) cell.dataset.also = also;
    cell.textContent = text || "";
    return cell;
  }
  // The library's header buttons answer Enter; a button answers the space bar too.
  element.tHead.addEventListener("keydown", (event) => {
    if (event.key !== " " || !event.target.matches("[role=button]")) return;
    event.preventDefault();
    event.target.click();
  });

  // Columns: the address holds the keys of those that are not as the page has them from the start.
  const usual = new Map([...heads, ...waiting.values()].map((head) => [head.dataset.key, !head.hidden]));
  const boxes = [...document.querySelectorAll("[data-column]")];
  const span = () => heads.filter((head) => !head.hidden).length;
  let changed = "";
  function showColumns(cols) {
    if (cols === changed) return;
    changed = cols;
    const others = new Set(cols.split(","));
    need([...others]);
    for (const [column, head] of heads.entries()) {
      const { key } = head.dataset;
      const hide = usual.get(key) === others.has(key) && key !== "name";
      if (head.hidden === hide) continue;
      for (const row of [head.parentElement, ...rows]) row.cells[column].hidden = hide;
    }
    for (const box of boxes) box.checked = heads[columnOf(box.dataset.column)]?.hidden === false;
    for (const cell of element.querySelectorAll(":scope > tbody > tr > td[colspan]")) cell.colSpan = span();
  }
  for (const box of boxes) {
    box.addEventListener("change", () => {
      const cols = boxes.filter((one) => one.checked !== usual.get(one.dataset.column)).map((one) => one.dataset.column);
      lens.set({ cols: cols.join(",") });
    });
  }
  const menu = document.getElementById("columns");
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.preventDefault();
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  addEventListener("pointerdown", (event) => {
    if (menu.open && !menu.contains(event.target)) menu.open = false;
  });

  // One row is in the order of the Tab key, by the link of its name; arrows move from there.
  const shown = () => [...element.tBodies[0].children].filter((row) => row.dataset.g);
  function reach(row) {
    for (const other of rows) linkOf(other).tabIndex = other === row ? 0 : -1;
  }
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
  const ownRow = (event) => {
    const row = event.target.closest("tr");
    return row?.dataset.g ? row : null;
  };
  element.tBodies[0].addEventListener("keydown", (event) => {
    const row = ownRow(event);
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) {
      const list = shown();
      const next = list[Math.min(list.length - 1, Math.max(0, list.indexOf(row) + steps[event.key]))];
      reach(next);
      linkOf(next).focus();
    } else if (event.key === " ") {
      lens.cards.toggle(row);
    } else return;
    event.preventDefault();
  });
  element.tBodies[0].addEventListener("click", (event) => {
    const row = ownRow(event);
    if (row && (event.ctrlKey || event.metaKey) && !event.target.closest("a")) {
      lens.join(row.dataset.k);
      return;
    }
    const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey;
    if (!row || elsewhere || (!event.target.closest("a") && !getSelection().isCollapsed)) return;
    event.preventDefault();
    reach(row);
    lens.cards.toggle(row);
  });

  function mark(state) {
    const mine = rowByKey.get(state.k);
    for (const row of rows) {
      if (row === mine) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
      row.classList.toggle("faint", Boolean(mine) && row !== mine);
    }
  }
  // How many launches of a kernel the filters leave; the other numbers of its row are those of all of them.
  const launches = columnOf("launches");
  const number = new Intl.NumberFormat("en");
  function count() {
    const hidden = lens.hidden();
    for (const row of rows) {
      const cell = row.cells[launches];
      const left = keysOf(row).filter((key) => !hidden[key]).reduce((sum, key) => sum + lens.items.get(key).n, 0);
      const text = `${left < Number(cell.dataset.order) ? `${number.format(left)} of ` : ""}${number.format(cell.dataset.order)}`;
      if (cell.textContent === text) continue;
      cell.dataset.also = left;
      cell.textContent = text;
    }
  }
  function bring(row) {
    if (paged) {
      const place = table.rows({ order: "current", search: "applied" }).nodes().toArray().indexOf(row);
      if (place >= 0) table.page(Math.floor(place / PAGE_ROWS)).draw("page");
    }
    reach(row);
  }
  let drawn = null;
  lens.on((state, before) => {
    const [[column, way]] = ordered(state.sort);
    const sorted = table.order()[0][0] === column && table.order()[0][1] === way;
    if (!sorted) table.order([[column, way]]);
    if (!sorted || drawn !== lens.hidden()) table.draw();
    if (drawn !== lens.hidden()) count();
    drawn = lens.hidden();
    showColumns(state.cols);
    mark(state);
    const row = rowByKey.get(state.k);
    if (row && (state.k !== before.k || state === before)) bring(row);
  });
  const keepReachable = () => {
    if (!shown().some((row) => linkOf(row).tabIndex === 0)) reach(shown()[0]);
  };
  build();
  keepReachable();
  if (paged) {
    addEventListener("beforeprint", () => table.page.len(-1).draw());
    addEventListener("afterprint", () => table.page.len(PAGE_ROWS).draw());
  }
  return {
    get table() {
      return table;
    },
    get heads() {
      return heads;
    },
    rows, span, bring, complete, waitingWords, rowByKey, linkOf,
  };
})();
