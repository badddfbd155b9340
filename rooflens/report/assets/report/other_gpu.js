// The kernels on another GPU: the page holds the numbers of every GPU; words and cells of the chosen one are made here.
(() => {
  const section = document.getElementById("what-if");
  const data = lens.data("what-if-data");
  if (!section || !data) return;

  const { MISSING, significant, si, duration, percent, factor, intensity, count, unbroken } = lens.format;
  const { gpus, main, labels } = data;
  const noun = "kernel";
  const find = (selector) => section.querySelector(selector);
  const select = find("#what-if-gpu");
  const ridges = find("#what-if-ridges tbody");
  const body = find("#what-if-kernels tbody");
  const rows = [...body.rows];

  function make(tag, text, className) {
    const element = document.createElement(tag);
    if (text) element.textContent = unbroken(text);
    if (className) element.className = className;
    return element;
  }

  // Words: which kernels switch between memory and compute, and the lower bound of their time.
  const SAME_RATIO = 1.005;
  const isSame = (ratio) => 1 / SAME_RATIO < ratio && ratio < SAME_RATIO;
  const ratioWords = (ratio) => {
    if (isSame(ratio)) return "the same";
    return ratio > 1 ? `${factor(ratio)} shorter` : `${factor(1 / ratio)} longer`;
  };
  const partOfTime = (ns) => (data.total_ns ? `${percent(ns / data.total_ns)} of GPU time` : "");
  const counted = (amount, ns) => count(amount, noun) + (partOfTime(ns) && ` with ${partOfTime(ns)}`);
  const changedCount = (gpu) => gpu.to.memory + gpu.to.compute;
  const peakUnit = (key) => (key.includes("int") ? "op/s" : "FLOP/s");

  function changeWords(gpu) {
    const { memory, compute } = gpu.to;
    const changed = changedCount(gpu);
    if (!changed) return `No ${noun} switches between memory and compute on ${gpu.name}.`;
    let how = `between memory and compute on ${gpu.name}: ${memory} to memory, ${compute} to compute`;
    if (!compute) how = `from compute to memory on ${gpu.name}`;
    if (!memory) how = `from memory to compute on ${gpu.name}`;
    return `${counted(changed, gpu.changed_ns)} ${changed === 1 ? "switches" : "switch"} ${how}.`;
  }
  function lowerBoundWords({ told }) {
    if (!told.count) return "";
    const [here, there] = [told.here_s, told.there_s].map((seconds) => duration(seconds * 1e9));
    const ratio = told.here_s / told.there_s;
    const who = told.count === 1 ? `only ${noun}` : count(told.count, noun);
    const whose = `The lower bound of the time of the ${who} limited by DRAM or by FLOPs`;
    if (isSame(ratio)) return `${whose} stays at ${here}.`;
    return `${whose} ${ratio > 1 ? "falls" : "rises"} from ${here} to ${there}: ${ratioWords(ratio)}.`;
  }
  function ridgeWords(gpu) {
    const [here, there] = [data.here?.peaks[main], gpu.peaks[main]];
    if (!here || !there) return "";
    const from = significant(here / data.here.bandwidth);
    const to = intensity(there / gpu.bandwidth);
    const bandwidth = factor(gpu.bandwidth / data.here.bandwidth);
    return `The DRAM ridge of ${labels[main]} moves from ${from} to ${to}: `
      + `${bandwidth} the bandwidth, ${factor(there / here)} the peak.`;
  }
  function apartWords({ apart }) {
    if (!apart.count) return "";
    const [is, their] = apart.count === 1 ? ["is", "its"] : ["are", "their"];
    return `${counted(apart.count, apart.ns)} ${is} limited by something else (latency, overhead, caches, other pipes), `
      + `or what limits ${is === "is" ? "it" : "them"} is unknown: nothing is predicted of ${their} time.`;
  }
  function missingWords(gpu) {
    return Object.entries(gpu.missing).map(([key, amount]) => (
      `${count(amount, noun)} ${amount === 1 ? "is" : "are"} not predicted: `
      + `no ${labels[key]} peak is published for ${gpu.name}.`
    ));
  }
  function datasheetWords(gpu) {
    const bandwidth = `DRAM ${si(gpu.bandwidth, "B/s")}`;
    const peak = gpu.peaks[main];
    return peak ? `${bandwidth} and ${labels[main]} ${si(peak, "FLOP/s")}` : bandwidth;
  }
  function answer(gpu) {
    if (gpu.profiled) {
      return [
        `This is the GPU that was profiled. Its datasheet roofs, ${datasheetWords(gpu)}, stand in the roofline beside `
          + "those of the report.",
        "The datasheet's are those of the boost clock, the report's those of the profiled one.",
        "",
      ];
    }
    const aside = [...missingWords(gpu)];
    if (!gpu.placed) return [`Nothing can be predicted for ${gpu.name}.`, "", aside.join(" ")];
    return [
      `${changeWords(gpu)} ${lowerBoundWords(gpu)}`.trim(),
      ridgeWords(gpu),
      [apartWords(gpu), ...aside].filter(Boolean).join(" "),
    ];
  }
  function showAnswer(gpu) {
    find("#what-if-answer").hidden = !gpu;
    if (!gpu) return;
    find("#what-if-name").textContent = gpu.name;
    for (const [i, part] of ["head", "body", "aside"].entries()) {
      find(`#what-if-${part}`).textContent = unbroken(answer(gpu)[i]);
    }
    find("#what-if-answer .pill").hidden = gpu.profiled;
  }

  // Ridges: the chosen GPU's row is marked where it stands already, else it stands below those profiled here.
  function withNote(cell, note) {
    if (note) cell.append(" ", make("small", note));
    return cell;
  }
  function ridgeRow(id, gpu) {
    const row = make("tr", "", "added");
    row.dataset.gpu = id;
    const head = make("th", gpu.name);
    head.scope = "row";
    row.append(head, make("td", si(gpu.bandwidth, "B/s"), "n"));
    for (const key of data.precisions) {
      const peak = gpu.peaks[key];
      const cell = make("td", "", "n");
      cell.append(make("b", peak ? significant(peak / gpu.bandwidth) : MISSING));
      row.append(withNote(cell, peak && si(peak, peakUnit(key))));
    }
    const changed = changedCount(gpu);
    const changes = make("td", changed ? String(changed) : gpu.placed ? "none" : MISSING, "n");
    row.append(withNote(changes, changed && partOfTime(gpu.changed_ns)));
    return row;
  }
  function showRidge(id, gpu) {
    for (const row of [...ridges.rows]) {
      if (row.classList.contains("added")) row.remove();
      else row.classList.remove("chosen");
    }
    if (!gpu) return;
    let row = [...ridges.rows].find((other) => other.dataset.gpu === id);
    if (!row) {
      row = ridgeRow(id, gpu);
      [...ridges.rows].filter((other) => "here" in other.dataset).at(-1).after(row);
    }
    row.classList.add("chosen");
  }

  // Kernels: T_math and T_memory with the other GPU's peaks; null where one is missing that the kernel needs.
  function place({ ops, bytes }, { peaks, bandwidth }) {
    const amounts = Object.entries(ops);
    const needed = data.small_part * amounts.reduce((total, [, amount]) => total + amount, 0);
    if (amounts.some(([key, amount]) => amount >= needed && !peaks[key])) return null;
    const math = amounts.reduce((seconds, [key, amount]) => seconds + (peaks[key] ? amount / peaks[key] : 0), 0);
    const memory = bytes / bandwidth;
    return { side: math > memory ? "compute" : "memory", lower: Math.max(math, memory) };
  }
  function fill(row, kernel, gpu) {
    const there = place(kernel, gpu);
    const changed = there !== null && there.side !== row.dataset.side;
    const side = row.querySelector(".there");
    side.replaceChildren(there ? find(`#what-if-${there.side}`).content.cloneNode(true) : "not predicted");
    if (changed) side.append(" ", make("span", "switches", "changes"));
    row.className = changed ? "changed" : "";
    const lower = there ? duration(there.lower * kernel.launches * 1e9) : MISSING;
    row.querySelector(".lower").textContent = unbroken(lower);
    const told = there && kernel.told;
    row.querySelector(".factor").textContent = told ? ratioWords(kernel.lower_s / there.lower) : MISSING;
    return changed;
  }
  // Those that switch come first, each part in order of time.
  function showKernels(gpu) {
    const isPredicted = Boolean(gpu) && !gpu.profiled;
    find("#what-if-moves").hidden = !isPredicted;
    if (!isPredicted) return;
    const changed = rows.filter((row, i) => fill(row, data.kernels[i], gpu));
    body.append(...changed, ...rows.filter((row) => !changed.includes(row)));
  }

  // A row is a kernel: it stays as long as the filters leave one of its launches.
  const launches = new Map(rows.map((row) => [row.dataset.g, []]));
  for (const item of lens.items.values()) launches.get(item.g)?.push(item.k);
  function mark() {
    const picked = lens.picked();
    const hidden = lens.hidden();
    for (const row of rows) {
      const own = launches.get(row.dataset.g);
      row.hidden = own.length > 0 && own.every((key) => hidden[key]);
      if (picked && row.dataset.g === picked.g) row.setAttribute("aria-current", "true");
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
    const id = lens.state.datasheet;
    if (id !== shown) {
      shown = id;
      select.value = id;
      if (id) find("details.part").open = true;
      const gpu = id ? gpus[id] : null;
      showRidge(id, gpu);
      showAnswer(gpu);
      showKernels(gpu);
    }
    mark();
  });
})();
