"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const data = (id) => JSON.parse(byId(id).textContent);
  const themes = data("themes");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const figures = [];

  for (const element of document.querySelectorAll(".scripted")) element.hidden = false;

  // Theme: the system's until the reader chooses; paper is light.
  const theme = () => root.dataset.theme || (prefersDark.matches ? "dark" : "light");
  const themeButton = byId("theme");
  function nameTheme() {
    themeButton.textContent = theme() === "dark" ? "Light theme" : "Dark theme";
  }
  themeButton.hidden = false;
  themeButton.addEventListener("click", () => {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    nameTheme();
    drawAll();
  });
  prefersDark.addEventListener("change", () => {
    nameTheme();
    drawAll();
  });
  addEventListener("beforeprint", () => drawAll("light"));
  addEventListener("afterprint", () => drawAll());
  nameTheme();

  // Charts: drawn when they have a width, and again when it or the theme changes.
  function sized(spec, width) {
    const parts = spec.vconcat || [spec];
    for (const part of parts) part.width = width;
    const height = width < 480 ? 320 : 440;
    for (const param of spec.params) {
      if (param.name === "w") param.value = width;
      if (param.name === "h") {
        param.value = height;
        if (parts[0].name === "plane") parts[0].height = height;
      }
    }
    return spec;
  }

  const options = (name) => ({
    ast: true,
    renderer: "svg",
    actions: false,
    config: themes[name],
    tooltip: { disableDefaultStyle: true },
  });

  async function embed(figure, name, width) {
    if (figure.view) figure.view.finalize();
    const result = await vegaEmbed(figure.box, sized(data(figure.box.dataset.spec), width), options(name));
    figure.view = result.view;
    for (const [signal, value] of Object.entries(figure.signals)) figure.view.signal(signal, value);
    await figure.view.runAsync();
    figure.view.addEventListener("click", (_event, item) => {
      if (item && item.datum && item.datum.k) pick(item.datum.k, item.datum);
    });
    const drawn = figure.box.querySelector("svg");
    return drawn ? Math.ceil(drawn.getBoundingClientRect().width) : width;
  }

  // Axis and label widths are known only once drawn: the first drawing measures them, the second fits.
  async function draw(figure, name = theme()) {
    const room = figure.box.clientWidth;
    if (!room) return;
    figure.room = room;
    const turn = (figure.turn = (figure.turn || Promise.resolve()).then(async () => {
      figure.box.style.width = "5000px";
      const guess = room - (figure.margin ?? 96);
      const total = await embed(figure, name, Math.max(guess, 160));
      if (total !== room) {
        figure.margin = total - Math.max(guess, 160);
        await embed(figure, name, Math.max(room - figure.margin, 160));
      }
      figure.box.style.width = "";
    }));
    await turn;
  }
  const drawAll = (name) => figures.forEach((figure) => draw(figure, name));

  for (const box of document.querySelectorAll(".chart")) {
    const figure = { box, signals: {} };
    figures.push(figure);
    new ResizeObserver(() => {
      if (box.style.width === "" && box.clientWidth !== figure.room) draw(figure);
    }).observe(box);
  }

  function set(figure, signal, value) {
    figure.signals[signal] = value;
    if (figure.view) figure.view.signal(signal, value).runAsync();
  }
  const inPlanes = () => figures.filter((figure) => figure.box.closest(".plane"));

  // One kernel is picked in every plane; its name and verdict are told below the chart.
  function pick(key, datum) {
    for (const figure of inPlanes()) {
      set(figure, "picked", key);
      tell(figure.box.closest(".plane").querySelector(".picked"), key, datum);
    }
  }
  function tell(line, key, datum) {
    const card = byId(key);
    const sentence = card && card.querySelector(".sentence");
    line.textContent = `${datum ? datum.name : card.querySelector(".name").textContent}: `;
    line.append(sentence ? sentence.textContent : datum ? datum.verdict || "" : "");
    if (!card) return;
    const link = document.createElement("a");
    link.href = `#${key}`;
    link.textContent = "Open its card";
    line.append(" ", link);
  }

  for (const radio of document.querySelectorAll(".levels input")) {
    radio.addEventListener("change", () => {
      const box = radio.closest(".plane").querySelector(".chart");
      set(figures.find((figure) => figure.box === box), "level", radio.value);
    });
  }

  const gpu = byId("gpu");
  if (gpu) {
    gpu.addEventListener("change", () => {
      for (const plane of document.querySelectorAll(".plane")) plane.hidden = plane.id !== gpu.value;
    });
  }

  for (const button of document.querySelectorAll("[data-export]")) {
    button.addEventListener("click", async () => {
      const box = button.closest(".plane, section").querySelector(".chart");
      const { view } = figures.find((figure) => figure.box === box);
      const link = document.createElement("a");
      link.href = await view.toImageURL(button.dataset.export, 2);
      link.download = `${box.dataset.spec.replace("spec-", "rooflens-")}.${button.dataset.export}`;
      link.click();
    });
  }

  // Cards: a link to one opens it and picks its kernel in the chart.
  function openCard() {
    const card = /^#k\d+$/.test(location.hash) && byId(location.hash.slice(1));
    if (!card) return;
    card.open = true;
    card.scrollIntoView();
    pick(card.id);
  }
  addEventListener("hashchange", openCard);
  openCard();

  // Table: sorted by its header buttons, filtered by the search field.
  const table = byId("kernels-table");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v ?? cell.textContent;
  };
  // What is missing stands last, whichever way the rest is sorted.
  const compare = (a, b, up) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const [x, y] = [Number(a), Number(b)];
    return (up ? 1 : -1) * (Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y);
  };
  function sort(header) {
    const text = header.dataset.key === "name" || header.dataset.key === "gpu" || header.dataset.key === "bound";
    const now = header.getAttribute("aria-sort");
    const up = now === "none" ? text : now === "descending";
    for (const other of header.parentElement.cells) other.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
    const column = header.cellIndex;
    rows.sort((a, b) => compare(value(a, column), value(b, column), up));
    body.append(...rows);
  }
  for (const header of table.tHead.rows[0].cells) {
    header.querySelector("button").addEventListener("click", () => sort(header));
  }

  const search = byId("search");
  const haystacks = new Map(rows.map((row) => [row, `${row.cells[0].dataset.v} ${row.textContent}`.toLowerCase()]));
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !words.every((word) => haystacks.get(row).includes(word));
    const left = rows.filter((row) => !row.hidden).length;
    byId("shown").textContent = words.length ? `${left} of ${rows.length} launches` : "";
  });
})();
