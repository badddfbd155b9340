"use strict";
/*
 * The timeline of a trace: what each stream ran when, from `lanes-data`.
 *
 * The window of time is `zoom` of the state (`from-to`, in nanoseconds), the chosen kernel is `mark`: both stand in the
 * address, and Back undoes a zoom. A kernel's row in a table has its `data-mark`; a click in either place chooses it.
 */
(() => {
  const canvas = document.getElementById("lanes");
  const given = canvas && lens.data("lanes-data");
  if (!given) return;
  const said = document.getElementById("lanes-said");
  const colour = document.getElementById("lanes-colour");
  const LANE = 24, RANGE = 18, GAP = 2, AXIS = 20, LABEL = 84, NARROW = 600, LEAST_NS = 100, WORDS = 40;
  const wall = Math.max(1, given.wall);

  for (const lane of given.lanes) {
    let at = 0;
    lane.begins = Float64Array.from(lane.starts, (step) => (at += step));
  }
  // Ranges of several threads may overlap: the words of one end where the next begins.
  const spans = given.spans.map(([level, text, begin, end]) => ({ level, text, begin, end, free: end }));
  const latest = new Map();
  for (const span of spans) {
    const before = latest.get(span.level);
    if (before) before.free = Math.min(before.free, span.begin);
    latest.set(span.level, span);
  }
  const levels = [...new Set(given.spans.map((span) => span[0]))].sort((a, b) => a - b);
  const rangesHigh = levels.length * (RANGE + GAP);
  const high = AXIS + rangesHigh + given.lanes.length * (LANE + GAP) + GAP;
  let from = 0, to = wall, dragged = null, over = null, waiting = false;

  const label = () => (canvas.clientWidth < NARROW ? 0 : LABEL);
  const xOf = (ns) => label() + ((ns - from) / (to - from)) * (canvas.clientWidth - label());
  const nsOf = (x) => from + (Math.max(0, x - label()) / (canvas.clientWidth - label())) * (to - from);
  const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  function time(ns) {
    const [size, unit] = UNITS.find(([each]) => Math.abs(ns) >= each) || UNITS[3];
    return `${Number((ns / size).toPrecision(3))} ${unit}`;
  }

  let colours = {};
  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    colours = {
      memory: of("--memory"), compute: of("--compute"), latency: of("--latency"), overhead: of("--overhead"),
      communication: of("--communication"), unknown: of("--muted"), ink: of("--ink"), page: of("--page"),
      line: of("--line"), grid: of("--grid"), muted: of("--muted"),
    };
  }
  // Hues a golden angle apart: neighbours in the list of operators differ.
  const isDark = () => getComputedStyle(document.documentElement).colorScheme.includes("dark");
  const hue = (place) => `hsl(${(place * 137.5) % 360} 45% ${isDark() ? 62 : 48}%)`;
  function paint(subject) {
    if (!subject) return colours.unknown;
    const [, kind, operator] = subject;
    if (operator >= 0 && colour.value === "operator" && kind !== "communication") return hue(operator);
    if (kind === "copy" || kind === "memset") return colours.line;
    return colours[kind.replace("?", "")] || colours.unknown;
  }
  const markOf = (subject) => (subject ? subject[3] : "");

  // The first mark of a lane that ends after a moment; those before it are not in the window.
  function firstAfter(lane, ns) {
    let low = 0, up = lane.begins.length;
    while (low < up) {
      const middle = (low + up) >> 1;
      if (lane.begins[middle] + lane.lengths[middle] < ns) low = middle + 1; else up = middle;
    }
    return low;
  }

  function draw() {
    waiting = false;
    const wide = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
    if (!wide) return;
    canvas.style.height = `${high}px`;
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(high * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    readColours();
    axis(pen, wide);
    ranges(pen);
    given.lanes.forEach((lane, i) => drawLane(pen, lane, AXIS + rangesHigh + i * (LANE + GAP)));
    if (label()) names(pen);
    if (dragged && dragged.to !== null) {
      pen.fillStyle = colours.ink;
      pen.globalAlpha = 0.15;
      pen.fillRect(Math.min(dragged.from, dragged.to), 0, Math.abs(dragged.to - dragged.from), high);
      pen.globalAlpha = 1;
    }
  }

  function axis(pen, wide) {
    const room = wide - label();
    const rough = ((to - from) / Math.max(2, room / 110));
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5, 10].find((each) => each * power >= rough) || 10);
    pen.fillStyle = colours.muted;
    pen.strokeStyle = colours.grid;
    for (let ns = Math.ceil(from / step) * step; ns <= to; ns += step) {
      const x = xOf(ns);
      pen.beginPath();
      pen.moveTo(x, AXIS - 4);
      pen.lineTo(x, high);
      pen.stroke();
      const text = time(ns);
      if (x + pen.measureText(text).width < wide) pen.fillText(text, x + 3, AXIS / 2);
    }
  }

  function ranges(pen) {
    for (const { level, text, begin, end, free } of spans) {
      if (end < from || begin > to) continue;
      const y = AXIS + levels.indexOf(level) * (RANGE + GAP);
      const x = Math.max(label(), xOf(begin)), w = Math.max(1, xOf(end) - x);
      pen.fillStyle = colours.grid;
      pen.fillRect(x, y, w, RANGE);
      pen.fillStyle = colours.line;
      pen.fillRect(x, y, 1, RANGE);
      const room = Math.min(x + w, xOf(free)) - x;
      if (room > WORDS) words(pen, given.texts[text], x + 4, y + RANGE / 2, room - 6, colours.ink);
    }
  }

  function drawLane(pen, lane, top) {
    const chosen = lens.state.mark;
    let drawnTo = -1, last = "";
    for (let i = firstAfter(lane, from); i < lane.begins.length && lane.begins[i] <= to; i++) {
      const subject = given.subjects[lane.subjects[i]];
      const x = Math.max(label(), xOf(lane.begins[i])), end = xOf(lane.begins[i] + lane.lengths[i]);
      const w = Math.max(1, end - x);
      const style = chosen && markOf(subject) !== chosen ? "faint" : "whole";
      // What ends within a pixel that is drawn already in the same way shows nothing new.
      if (x + w <= drawnTo && style === last) continue;
      pen.globalAlpha = style === "faint" ? 0.25 : 1;
      pen.fillStyle = paint(subject);
      pen.fillRect(x, top, w > 3 ? w - 0.5 : w, LANE);
      drawnTo = x + w;
      last = style;
      if (w > WORDS && subject) words(pen, subject[0], x + 4, top + LANE / 2, w - 8, colours.page);
    }
    pen.globalAlpha = 1;
  }

  function words(pen, text, x, y, room, style) {
    let shown = text;
    if (pen.measureText(shown).width > room) {
      let keep = Math.floor(shown.length * room / pen.measureText(shown).width) - 1;
      if (keep < 3) return;
      shown = `${shown.slice(0, keep)}…`;
    }
    pen.fillStyle = style;
    pen.fillText(shown, x, y);
  }

  function names(pen) {
    pen.fillStyle = colours.page;
    pen.fillRect(0, 0, LABEL - 1, high);
    given.lanes.forEach((lane, i) => words(pen, lane.label, 6, AXIS + rangesHigh + i * (LANE + GAP) + LANE / 2, LABEL - 10, colours.ink));
  }

  function soon() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(draw);
  }

  function look(begin, end) {
    const span = Math.min(wall, Math.max(LEAST_NS, end - begin));
    const start = Math.min(Math.max(0, begin), wall - span);
    lens.set({ zoom: span >= wall ? "" : `${Math.round(start)}-${Math.round(start + span)}` });
  }
  function scale(by, around = (from + to) / 2) {
    look(around - (around - from) * by, around + (to - around) * by);
  }

  function at(event) {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const ns = nsOf(x), slack = ((to - from) / canvas.clientWidth) * 2;
    if (y >= AXIS && y < AXIS + rangesHigh) {
      const level = levels[Math.floor((y - AXIS) / (RANGE + GAP))];
      const span = spans.findLast((one) => one.level === level && one.begin <= ns && one.end >= ns);
      return span ? { text: `${given.texts[span.text]}, ${time(span.end - span.begin)}`, span } : null;
    }
    const lane = given.lanes[Math.floor((y - AXIS - rangesHigh) / (LANE + GAP))];
    if (!lane) return null;
    const i = firstAfter(lane, ns - slack);
    if (i >= lane.begins.length || lane.begins[i] > ns + slack) return null;
    const subject = given.subjects[lane.subjects[i]];
    if (!subject) return null;
    const operator = subject[2] >= 0 && given.operators[subject[2]];
    const text = `${subject[0]}, ${time(lane.lengths[i])} from ${time(lane.begins[i])} on${operator ? `, ${operator}` : ""}`;
    return { text, mark: markOf(subject) };
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const x = event.clientX - canvas.getBoundingClientRect().left;
    dragged = { from: x, to: null };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (dragged) {
      const x = event.clientX - canvas.getBoundingClientRect().left;
      if (dragged.to !== null || Math.abs(x - dragged.from) > 4) dragged.to = x;
      soon();
      return;
    }
    over = at(event);
    said.textContent = over ? over.text : "";
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!dragged) return;
    const { from: begin, to: end } = dragged;
    dragged = null;
    if (end !== null) {
      look(nsOf(Math.min(begin, end)), nsOf(Math.max(begin, end)));
      return;
    }
    const found = at(event);
    if (found && found.span) look(found.span.begin, found.span.end);
    else choose(found && found.mark !== lens.state.mark ? found.mark : "", true);
  });
  canvas.addEventListener("dblclick", () => look(0, wall));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    scale(event.deltaY > 0 ? 1.25 : 0.8, nsOf(event.clientX - canvas.getBoundingClientRect().left));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const by = (to - from) / 4;
    const keys = {
      "+": () => scale(0.5), "=": () => scale(0.5), "-": () => scale(2), ArrowLeft: () => look(from - by, to - by),
      ArrowRight: () => look(from + by, to + by), Escape: () => look(0, wall),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  document.getElementById("lanes-in").addEventListener("click", () => scale(0.5));
  document.getElementById("lanes-out").addEventListener("click", () => scale(2));
  document.getElementById("lanes-whole").addEventListener("click", () => look(0, wall));
  colour.addEventListener("change", soon);

  const rows = [...document.querySelectorAll("tr[data-mark]")];
  function choose(mark, isSought) {
    lens.set({ mark: mark || "" });
    const row = mark && isSought && rows.find((one) => one.dataset.mark === mark);
    if (!row) return;
    for (let fold = row.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    row.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  }
  for (const row of rows) {
    const toggle = () => choose(row.dataset.mark === lens.state.mark ? "" : row.dataset.mark, false);
    row.addEventListener("click", (event) => {
      if (!event.target.closest("a, button, summary") && !String(getSelection())) toggle();
    });
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter") toggle();
    });
  }

  lens.on((state) => {
    const [begin, end] = state.zoom.split("-").map(Number);
    [from, to] = end > begin && begin >= 0 ? [begin, Math.min(end, wall)] : [0, wall];
    for (const row of rows) row.classList.toggle("marked", row.dataset.mark === state.mark);
    soon();
  });
  new ResizeObserver(soon).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
  new MutationObserver(soon).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "class", "style"] });
  for (const one of document.querySelectorAll(".lanes .scripted")) one.hidden = false;
  draw();
})();
