"use strict";
/*
 * Timelines: what each stream of each program ran when, from `lanes-data`, one below the other on one scale.
 *
 * The window of time is `zoom` of the state (`from-to`, in nanoseconds), the chosen kernel is `mark`: both stand in the
 * address, and Back undoes a zoom. A kernel's row in a table has its `data-mark`; a click in either place chooses it.
 * What the filters of the page leave out is faint.
 */
(() => {
  const canvas = document.getElementById("lanes");
  const given = canvas && lens.data("lanes-data");
  if (!given) return;
  const said = document.getElementById("lanes-said");
  const colour = document.getElementById("lanes-colour");
  const LANE = 24, RANGE = 18, GAP = 2, AXIS = 20, LABEL = 84, NARROW = 600, LEAST_NS = 100, WORDS = 40, FEW = 16;
  const wall = Math.max(1, given.wall);

  // Every strip of the drawing from top to bottom: names of programs, levels of ranges, streams.
  const strips = [];
  let high = AXIS;
  function strip(kind, height, rest) {
    strips.push({ kind, top: high, height, ...rest });
    high += height + GAP;
  }
  for (const part of given.parts) {
    if (part.name) strip("part", RANGE, { part });
    const levels = new Map();
    for (const [level, text, begin, end] of part.spans) {
      if (!levels.has(level)) levels.set(level, []);
      const before = levels.get(level).at(-1);
      // Ranges of several threads may overlap: the words of one end where the next begins.
      if (before) before.free = Math.min(before.free, begin);
      levels.get(level).push({ text, begin, end, free: end });
    }
    for (const level of [...levels.keys()].sort((a, b) => a - b)) strip("ranges", RANGE, { part, spans: levels.get(level) });
    for (const lane of part.lanes) {
      let at = 0;
      lane.begins = Float64Array.from(lane.starts, (step) => (at += step));
      strip("lane", LANE, { part, lane });
    }
  }
  const MOST_PX = 16384;
  let from = 0, to = wall, dragged = null, over = null, waiting = false;

  const label = () => (canvas.clientWidth < NARROW ? 0 : LABEL);
  const xOf = (ns) => label() + ((ns - from) / (to - from)) * (canvas.clientWidth - label());
  const nsOf = (x) => from + (Math.max(0, x - label()) / (canvas.clientWidth - label())) * (to - from);
  const time = lens.format.duration;

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
  // A row of a comparison has the marks of both sides.
  const isOf = (mark, marks) => marks.split(" ").includes(mark);

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
    const wide = canvas.clientWidth;
    if (!wide) return;
    const ratio = Math.max(1, Math.min(window.devicePixelRatio || 1, MOST_PX / high));
    canvas.style.height = `${high}px`;
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(high * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    readColours();
    axis(pen, wide);
    const hidden = lens.items.size ? lens.hidden() : {};
    const filters = lens.items.size && lens.filtered();
    const isLeftOut = (mark) => filters && (hidden[itemOf(mark)] ?? !lens.items.has(itemOf(mark)));
    for (const one of strips) {
      if (one.kind === "part") drawName(pen, one, wide);
      else if (one.kind === "ranges") drawRanges(pen, one);
      else drawLane(pen, one, isLeftOut);
    }
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

  function drawName(pen, { part, top }, wide) {
    pen.font = "600 12px system-ui, sans-serif";
    words(pen, part.name, label() ? 6 : 4, top + RANGE / 2, wide - 12, colours.ink);
    pen.font = "12px system-ui, sans-serif";
  }

  function drawRanges(pen, { spans, top }) {
    for (const { text, begin, end, free } of spans) {
      if (end < from || begin > to) continue;
      const x = Math.max(label(), xOf(begin)), w = Math.max(1, xOf(end) - x);
      pen.fillStyle = colours.grid;
      pen.fillRect(x, top, w, RANGE);
      pen.fillStyle = colours.line;
      pen.fillRect(x, top, 1, RANGE);
      const room = Math.min(x + w, xOf(free)) - x;
      if (room > FEW) words(pen, given.texts[text], x + 4, top + RANGE / 2, room - 6, colours.ink);
    }
  }

  // What is faint comes first, so that none of it lies over what is chosen.
  function drawLane(pen, { part, lane, top }, isLeftOut) {
    const { mark: chosen, stream, rank } = lens.state;
    const isOther = (stream && lane.name !== stream) || (rank && part.name && part.name !== rank);
    const isFaint = (mark) => Boolean(isOther || isLeftOut(mark) || (chosen && !isOf(mark, chosen)));
    for (const faint of [true, false]) {
      let drawnTo = -1;
      for (let i = firstAfter(lane, from); i < lane.begins.length && lane.begins[i] <= to; i++) {
        const subject = given.subjects[lane.subjects[i]];
        if (isFaint(markOf(subject)) !== faint) continue;
        const x = Math.max(label(), xOf(lane.begins[i])), end = xOf(lane.begins[i] + lane.lengths[i]);
        const w = Math.max(1, end - x);
        // What ends within a pixel that is drawn already shows nothing new.
        if (x + w <= drawnTo) continue;
        pen.fillStyle = faint ? `color-mix(in srgb, ${paint(subject)} 25%, ${colours.page})` : paint(subject);
        pen.fillRect(x, top, w > 3 ? w - 0.5 : w, LANE);
        drawnTo = x + w;
        if (w > WORDS && subject) words(pen, subject[0], x + 4, top + LANE / 2, w - 8, faint ? colours.muted : colours.page);
      }
    }
  }

  function words(pen, text, x, y, room, style) {
    // Of `ProfilerStep#7` the number tells most.
    const number = /[ #](\d+)$/.exec(text) || [];
    let shown = [text, ...number].find((one) => pen.measureText(one).width <= room);
    if (!shown) {
      const keep = Math.floor(text.length * room / pen.measureText(text).width) - 1;
      if (keep < 3 || number.length) return;
      shown = `${text.slice(0, keep)}…`;
    }
    pen.fillStyle = style;
    pen.fillText(shown, x, y);
  }

  function names(pen) {
    for (const { kind, lane, top, height } of strips) {
      if (kind === "part") continue;
      pen.fillStyle = colours.page;
      pen.fillRect(0, top, LABEL - 1, height);
      if (lane) words(pen, lane.name, 6, top + height / 2, LABEL - 10, colours.ink);
    }
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
    const strip = strips.find((one) => y >= one.top && y < one.top + one.height);
    if (strip?.kind === "ranges") {
      const span = strip.spans.findLast((one) => one.begin <= ns && one.end >= ns);
      return span ? { text: `${given.texts[span.text]}, ${time(span.end - span.begin)}`, span } : null;
    }
    const lane = strip?.lane;
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
    else seek(found?.mark || "");
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

  // A kernel that is chosen is never left out: choosing it in the lanes lifts the filters that hide it.
  const rows = [...document.querySelectorAll("tr[data-mark]")];
  const rowByMark = new Map(rows.toReversed().flatMap((row) => row.dataset.mark.split(" ").map((mark) => [mark, row])));
  const rowOf = (mark) => rowByMark.get(mark);
  const itemOf = (mark) => rowOf(mark)?.dataset.mark ?? mark;
  function seek(mark) {
    const row = mark && rowOf(mark);
    const marks = row ? row.dataset.mark : mark;
    if (marks === lens.state.mark) {
      lens.set({ mark: "" });
      return;
    }
    if (lens.hidden()[marks]) lens.clear();
    lens.set({ mark: marks });
    if (!row) return;
    for (let fold = row.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    row.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  }
  for (const row of rows) {
    const toggle = () => lens.set({ mark: row.dataset.mark === lens.state.mark ? "" : row.dataset.mark });
    row.tabIndex = 0;
    row.addEventListener("click", (event) => {
      if (!event.target.closest("a, button, summary") && !String(getSelection())) toggle();
    });
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target === row) toggle();
    });
  }

  // What is shared is the timeline as it stands.
  lens.picture = async (pixels) => {
    const sheet = document.createElement("canvas");
    sheet.width = Math.round(canvas.clientWidth * pixels);
    sheet.height = Math.round(high * pixels);
    sheet.getContext("2d").drawImage(canvas, 0, 0, sheet.width, sheet.height);
    return sheet;
  };

  const legend = document.getElementById("lanes-legend");
  lens.on((state) => {
    const [begin, end] = state.zoom.split("-").map(Number);
    [from, to] = end > begin && begin >= 0 ? [begin, Math.min(end, wall)] : [0, wall];
    for (const row of rows) row.classList.toggle("marked", row.dataset.mark === state.mark);
    soon();
  });
  colour.addEventListener("change", () => {
    legend.hidden = colour.value === "operator";
  });
  new ResizeObserver(soon).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
  new MutationObserver(soon).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "class", "style"] });
  for (const one of document.querySelectorAll(".lanes .scripted")) one.hidden = false;
  draw();
})();
