// The kernels table: DataTables sorts, pages and hides its rows; the keyboard walks them; one isolates its kernel.
(() => {
  const PAGE_FROM = 200;
  const PAGE_ROWS = 100;
  const element = document.getElementById("kernels-table");
  const rows = [...element.tBodies[0].rows];
  if (rows.length === 0) return;

  // What is missing stands last, whichever way the rest is sorted.
  const known = (way) => (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    return way * (typeof a === "number" ? a - b : a.localeCompare(b));
  };
  DataTable.type("measure", {
    order: { pre: (value) => (value === "" ? "" : Number(value)), asc: known(1), desc: known(-1) },
  });
  DataTable.type("words", { order: { asc: known(1), desc: known(-1) } });
  DataTable.ext.errMode = "throw";

  const heads = [...element.tHead.rows[0].cells];
  const columnOf = (key) => heads.findIndex((head) => head.dataset.key === key);
  const columns = heads.map((head) => {
    const words = !head.classList.contains("n");
    // Filtering is the page's own: DataTables would parse the names of kernels as HTML to search them.
    const orderSequence = words ? ["asc", "desc"] : ["desc", "asc"];
    return { type: words ? "words" : "measure", orderSequence, searchable: false };
  });
  const untouched = [[Math.max(columnOf("time"), 0), "desc"]];
  const ordered = (sort) => {
    const column = columnOf(sort.replace(/^-/, ""));
    return column < 0 ? untouched : [[column, sort.startsWith("-") ? "desc" : "asc"]];
  };
  const paged = rows.length > PAGE_FROM;
  const table = new DataTable(element, {
    autoWidth: false, columns, info: false, order: ordered(lens.state.sort), orderClasses: false, orderMulti: false,
    pageLength: PAGE_ROWS, paging: paged, processing: false,
    layout: { topStart: null, topEnd: null, bottomStart: null, bottomEnd: paged ? "paging" : null },
    language: {
      emptyTable: "", zeroRecords: "No launch is left by these filters.",
      paginate: { previous: "Previous", next: "Next" },
    },
  });
  table.search.fixed("lens", (_text, _data, index) => !lens.hidden()[table.row(index).node().dataset.k]);

  table.on("order", () => {
    const [[column, way]] = table.order();
    const named = `${way === "desc" ? "-" : ""}${heads[column].dataset.key}`;
    const sort = named === "-time" ? "" : named;
    if (sort !== lens.state.sort) lens.set({ sort });
  });
  // The library's header buttons answer Enter; a button answers the space bar too.
  element.tHead.addEventListener("keydown", (event) => {
    if (event.key !== " " || !event.target.matches("[role=button]")) return;
    event.preventDefault();
    event.target.click();
  });

  // One row is in the order of the Tab key; arrows move from there.
  const shown = () => [...element.tBodies[0].querySelectorAll("tr[data-k]")];
  function reach(row) {
    for (const other of rows) other.tabIndex = -1;
    if (row) row.tabIndex = 0;
  }
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
  const isolate = (row) => lens.set({ k: row.dataset.k === lens.state.k ? "" : row.dataset.k });
  element.tBodies[0].addEventListener("keydown", (event) => {
    const row = event.target.closest("tr[data-k]");
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) {
      const list = shown();
      const next = list[Math.min(list.length - 1, Math.max(0, list.indexOf(row) + steps[event.key]))];
      reach(next);
      next.focus();
    } else if (event.target === row && (event.key === "Enter" || event.key === " ")) {
      isolate(row);
    } else return;
    event.preventDefault();
  });
  element.tBodies[0].addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-k]");
    if (row && !event.target.closest("a") && getSelection().isCollapsed) isolate(row);
  });
  for (const link of element.querySelectorAll("tbody a")) link.tabIndex = -1;

  function mark(state) {
    const item = lens.picked();
    for (const row of rows) {
      const mine = row.dataset.k === state.k;
      if (mine) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
      const related = item && item.g !== "" && lens.items.get(row.dataset.k)?.g === item.g;
      row.classList.toggle("faint", Boolean(item) && !mine && !related);
    }
  }
  function bring(key) {
    const row = rows.find((one) => one.dataset.k === key);
    if (!row) return;
    if (paged) {
      const place = table.rows({ order: "current", search: "applied" }).nodes().toArray().indexOf(row);
      if (place >= 0) table.page(Math.floor(place / PAGE_ROWS)).draw("page");
    }
    reach(row);
    // Only the table's own box is scrolled: the reader may be looking at a chart.
    const box = element.closest(".scroll");
    const [place, room] = [row.getBoundingClientRect(), box.getBoundingClientRect()];
    const head = element.tHead.offsetHeight;
    if (place.top < room.top + head || place.bottom > room.bottom) box.scrollTop += place.top - room.top - head;
  }
  let drawn = null;
  lens.on((state, before) => {
    const [[column, way]] = ordered(state.sort);
    const sorted = table.order()[0][0] === column && table.order()[0][1] === way;
    if (!sorted) table.order([[column, way]]);
    if (!sorted || drawn !== lens.hidden()) table.draw();
    drawn = lens.hidden();
    mark(state);
    if (state.k && (state.k !== before.k || state === before)) bring(state.k);
  });
  const keepReachable = () => {
    if (!shown().some((row) => row.tabIndex === 0)) reach(shown()[0]);
  };
  table.on("draw", keepReachable);
  keepReachable();
  if (paged) {
    addEventListener("beforeprint", () => table.page.len(-1).draw());
    addEventListener("afterprint", () => table.page.len(PAGE_ROWS).draw());
  }
})();
