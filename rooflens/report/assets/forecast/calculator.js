// The calculator: what is chosen stands in the address, and every result is worked out from it.
(() => {
  const box = document.getElementById("calculator");
  const all = lens.data("calculator-data");
  const { MISSING, si, duration, percent, factor, significant, intensity, unbroken } = lens.format;
  const form = box.querySelector("form");
  const refusal = form.querySelector(".refusal");
  const svg = box.querySelector("svg.live");
  const WRITE_AFTER_MS = 120;
  const NS_PER_S = 1e9;

  const own = (object, key) => (Object.hasOwn(object, key) ? object[key] : undefined);
  const startSizes = (name) => (name === all.start.operation
    ? { ...all.start.sizes }
    : Object.fromEntries(all.operations[name].sizes.map((size) => [size.name, size.start])));

  // Sizes that may move together do so where they start alike.
  function alike(name, sizes) {
    const { together } = all.operations[name];
    return together.length > 0 && together.every((size) => sizes[size] === sizes[together[0]]);
  }

  function begin(name = all.start.operation) {
    const sizes = startSizes(name);
    return { op: name, gpu: all.start.gpu, vs: "", dtype: all.start.dtype, link: all.start.link, achieved: all.start.achieved, sizes, together: alike(name, sizes) };
  }
  let state = begin();
  const remembered = new Map();

  // ---- The address: what differs from the start.

  const isState = (text) => text.includes("=");
  const fits = (size, value) => Number.isInteger(value) && value >= size.least && value <= size.most;

  function read(text) {
    const given = new URLSearchParams(text);
    const name = own(all.operations, given.get("op")) ? given.get("op") : all.start.operation;
    const found = begin(name);
    if (own(all.gpus, given.get("gpu"))) found.gpu = given.get("gpu");
    if (own(all.gpus, given.get("vs"))) found.vs = given.get("vs");
    if (own(all.dtypes, given.get("dtype"))) found.dtype = given.get("dtype");
    if (given.has("achieved")) found.achieved = Number(given.get("achieved")) > 0 ? Number(given.get("achieved")) : null;
    if (["", ...all.links].includes(given.get("link"))) found.link = given.get("link");
    for (const size of all.operations[name].sizes) {
      const value = Number(given.get(size.name) ?? NaN);
      if (fits(size, value)) found.sizes[size.name] = value;
    }
    found.together = alike(name, found.sizes) && given.get("together") !== "0";
    return found;
  }

  function written() {
    const text = new URLSearchParams();
    const usual = begin(state.op);
    if (state.op !== all.start.operation) text.set("op", state.op);
    for (const key of ["gpu", "vs", "dtype", "link", "achieved"]) {
      if (state[key] !== usual[key]) text.set(key, state[key] ?? "");
    }
    for (const [name, value] of Object.entries(state.sizes)) {
      if (value !== usual.sizes[name]) text.set(name, value);
    }
    if (alike(state.op, state.sizes) && !state.together) text.set("together", "0");
    return text.toString();
  }

  let waiting = 0;
  function save() {
    clearTimeout(waiting);
    const text = written();
    const now = location.hash.slice(1);
    if (text === now || (text === "" && !isState(now))) return;
    try {
      history.replaceState(history.state, "", `${location.pathname}${location.search}${text ? `#${text}` : ""}`);
    } catch {
      // A page that may not write its address still works; only the view cannot be shared.
    }
  }

  // ---- The forecast.

  const operation = () => all.operations[state.op];
  const pipe = (gpu, dtype, unit) => all.dtypes[dtype][unit].find((name) => name in gpu.peaks);

  // The link that was chosen, else the fastest one, if it joins so many GPUs.
  const LINKS = { nvlink: "NVLink", pcie: "PCIe" };
  function linkOf(gpu, group) {
    const kinds = state.link ? [state.link] : all.links;
    const kind = kinds.find((one) => gpu.links[one] && group <= (gpu.links[one].joins ?? Infinity));
    return kind ? { kind, ...gpu.links[kind] } : null;
  }

  function predict(gpuId, sizes = state.sizes, dtype = state.dtype) {
    const gpu = all.gpus[gpuId];
    const program = operation();
    const inputs = { ...sizes, element_bytes: all.dtypes[dtype].bytes, bandwidth: gpu.bandwidth[0], achieved: state.achieved };
    for (const unit of program.units) {
      const name = pipe(gpu, dtype, unit);
      if (!name) return { refusal: `\`${gpu.name}\` has no published peak for ${dtype}` };
      inputs[`${unit} pipe`] = name;
      [inputs[`${unit} peak`]] = gpu.peaks[name];
    }
    const group = lens.programs.group(program, inputs);
    const link = group > 1 ? linkOf(gpu, group) : null;
    if (group > 1 && !link) return { refusal: `\`${gpu.name}\` has no ${LINKS[state.link] || "link"} that joins ${group.toLocaleString("en")} GPUs` };
    if (link) [inputs.link, inputs["link rate"]] = [link.kind, link.rate[0]];
    return { refusal: null, gpu, group, link, ...lens.programs.forecast(program, inputs) };
  }

  // ---- Sliders: eight steps an octave, only those that fit the other sizes.

  const STEPS_AN_OCTAVE = 8;
  const LARGEST_START = 4096;
  const OCTAVES = { below: 14, above: 6 };

  function marks(size) {
    if (size.most === 1) return [0, 1];
    const octave = Math.floor(Math.log2(Math.max(1, startSizes(state.op)[size.name])));
    const high = Math.min(size.most, Math.max(LARGEST_START, 2 ** (octave + OCTAVES.above)));
    const found = new Set(size.least === 0 ? [0] : []);
    for (let low = Math.max(1, 2 ** (octave - OCTAVES.below)); low < high; low *= 2) {
      for (let step = 0; step < STEPS_AN_OCTAVE; step += 1) found.add(Math.floor(low * (1 + step / STEPS_AN_OCTAVE)));
    }
    found.add(high);
    return [...found].filter((value) => value >= size.least);
  }

  const isTogether = (name) => state.together && operation().together.includes(name);
  const withSize = (name, value) => {
    const names = isTogether(name) ? operation().together : [name];
    return { ...state.sizes, ...Object.fromEntries(names.map((one) => [one, value])) };
  };
  const allowed = (size) => marks(size).filter((value) => !predict(state.gpu, withSize(size.name, value)).refusal);

  const nearest = (values, wanted) => {
    const far = (value) => Math.abs(Math.log((value + 0.5) / (wanted + 0.5)));
    return values.reduce((best, value, i) => (far(value) < far(values[best]) ? i : best), 0);
  };

  // ---- Controls.

  const make = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const words = (name) => name.replaceAll("_", " ");

  function sizeControls() {
    const rows = operation().sizes.map((size) => {
      const id = `size-${size.name}`;
      if (size.least === 0 && size.most === 1) {
        const input = make("input", { type: "checkbox", name: size.name, id });
        return make("label", { className: "check", title: size.meaning }, input, make("span", {}, size.meaning.replace(/^1: /, "")));
      }
      const number = make("input", { type: "number", name: size.name, id, min: size.least, max: size.most, step: 1, inputMode: "numeric" });
      const slider = make("input", { type: "range", name: size.name, min: 0, step: 1 });
      slider.setAttribute("aria-label", `${words(size.name)}, slider`);
      number.setAttribute("aria-describedby", `${id}-means`);
      const label = make("label", { htmlFor: id }, make("b", {}, words(size.name)));
      const means = make("small", { id: `${id}-means` }, size.meaning);
      return make("div", { className: "size" }, label, number, slider, means);
    });
    form.querySelector(".sizes").replaceChildren(...rows);
  }

  function showSizes(busy) {
    for (const size of operation().sizes) {
      const value = state.sizes[size.name];
      for (const input of form.querySelectorAll(`.sizes [name="${size.name}"]`)) {
        if (input.type === "checkbox") input.checked = value === 1;
        else if (input.type === "range") {
          const values = input === busy && input.values ? input.values : allowed(size);
          input.values = values.length ? values : [value];
          input.max = input.values.length - 1;
          input.value = nearest(input.values, value);
          input.setAttribute("aria-valuetext", value.toLocaleString("en"));
        } else if (input !== busy) {
          input.value = value;
          input.removeAttribute("aria-invalid");
        }
      }
    }
  }

  function showControls(busy) {
    for (const name of ["op", "gpu", "vs", "dtype", "link"]) form.elements[name].value = state[name];
    for (const option of form.elements.dtype.options) {
      option.disabled = operation().units.some((unit) => !pipe(all.gpus[state.gpu], option.value, unit));
    }
    for (const option of form.elements.link.options) option.disabled = option.value !== "" && !all.gpus[state.gpu].links[option.value];
    form.elements.link.closest(".field").hidden = !operation().shared;
    if (form.elements.achieved !== busy) form.elements.achieved.value = state.achieved === null ? "" : state.achieved.toExponential().replace("e+", "e");
    const { together } = operation();
    const check = form.querySelector(".together");
    check.hidden = !alike(state.op, state.sizes);
    check.querySelector("span").textContent = `Move ${together.slice(0, -1).join(", ")} and ${together.at(-1)} together`;
    check.querySelector("input").checked = state.together;
    showSizes(busy);
  }

  // ---- Results.

  const capital = (text) => text[0].toUpperCase() + text.slice(1);
  const label = (key) => all.labels[key] || key;
  const time = (seconds) => duration(seconds * NS_PER_S);

  // The sizes that are not as usual: `m = n = k = 4,096`.
  function sizesText() {
    const changed = operation().sizes.filter((size) => state.sizes[size.name] !== size.default).map((size) => size.name);
    const values = new Set(changed.map((name) => state.sizes[name]));
    const grouped = (name) => state.sizes[name].toLocaleString("en");
    if (changed.length > 1 && values.size === 1) return `${changed.join(" = ")} = ${grouped(changed[0])}`;
    return changed.map((name) => `${name} ${grouped(name)}`).join(", ") || "usual sizes";
  }

  function sentence(result) {
    const bounds = `At least ${time(result.t_lower_s)}, ${time(result.t_upper_s)} without overlap.`;
    if (result.parts.length) {
      const of = result.parts.filter((part) => part.regime === result.regime);
      const share = of.reduce((sum, part) => sum + part.t_lower_s, 0) / (result.t_lower_s || 1);
      return `${capital(result.regime)}-bound for ${percent(share)} of its lower bound. ${bounds}`;
    }
    if (!result.flop) {
      const sent = result.sent_bytes ? ` and ${si(result.sent_bytes, "B")} to send` : "";
      return `${capital(result.regime)}-bound: no FLOPs, ${si(result.bytes, "B")} to move${sent}. ${bounds}`;
    }
    if (result.regime === "communication") {
      return `Communication-bound: ${si(result.sent_bytes, "B")} to send take ${factor(result.t_comms_s / Math.max(result.t_math_s, result.t_memory_s))} as long as the rest. ${bounds}`;
    }
    const over = result.intensity / result.ridge;
    const apart = over >= 1 ? `${factor(over)} the ridge` : `${factor(1 / over)} below the ridge`;
    return `${capital(result.regime)}-bound: ${intensity(result.intensity)}, ${apart} of ${significant(result.ridge)}. ${bounds}`;
  }

  const placed = (result) => result.attainable_flop_per_s > 0 && result.intensity > 0;

  function dotNames(result, who) {
    const rate = si(result.attainable_flop_per_s, "FLOP/s");
    return [`${who}${intensity(result.intensity)}, ${rate}`, `${who}${rate}`, rate];
  }

  function machine(result, kind, who) {
    const used = result.parts.length ? result.parts.filter((part) => part.flop) : [result];
    const pipes = new Map((used.length ? used : [result]).map((part) => [part.peak_flop_per_s, part.peak]));
    const at = (part) => ({ x: part.intensity, y: part.attainable_flop_per_s, regime: part.regime });
    const parts = kind === "second" ? [] : result.parts.filter(placed).map((part) => (
      { ...at(part), share: part.t_lower_s / result.t_lower_s, words: part.label }));
    return {
      who, kind, parts,
      bandwidth: result.bandwidth_bytes_per_s,
      memory: result.gpu.memory,
      // Two GPUs are told apart by one slope each.
      l2: who ? null : result.gpu.l2 && result.gpu.l2[0],
      // Bytes sent go with bytes moved: over those, a link is a slope like any other.
      link: result.link && result.sent_bytes && !result.parts.length
        ? { rate: (result.link.rate[0] * result.bytes) / result.sent_bytes, label: `${result.link.name} ${si(result.link.rate[0], "B/s")}` }
        : null,
      pipes: [...pipes].sort(([a], [b]) => b - a).map(([peak, key]) => ({ label: label(key), peak })),
      dot: placed(result) ? { ...at(result), names: dotNames(result, who) } : null,
    };
  }

  function drawPlane(results) {
    const [first, second] = results;
    const whos = second ? results.map((result) => `${result.gpu.short}: `) : [""];
    const measured = first.achieved_share_of_roof !== null
      ? [{ x: first.intensity, y: first.achieved_flop_per_s, top: first.attainable_flop_per_s,
        words: `measured: ${percent(first.achieved_share_of_roof)} of its roof` }]
      : [];
    lens.plane.draw(svg, {
      title: results.map((result) => result.gpu.short).join(" and "),
      subtitle: `${state.op}, ${state.dtype}: ${sizesText()}`,
      machines: results.map((result, i) => machine(result, i ? "second" : "first", whos[i])),
      extra: measured,
    });
    svg.setAttribute("aria-label", `${sentence(first)} Roofline of ${first.gpu.name}; the tables below hold the same data.`);
  }

  // One number: its text for readers, its value for scripts.
  function cell(result, key, text, of, name = "td") {
    const value = result[key];
    const made = make(name, { className: name === "td" ? "n" : "" }, unbroken(value === null || value === undefined ? MISSING : text(value)));
    Object.assign(made.dataset, { key, value: value ?? "", of });
    return made;
  }

  function bar(pieces, whole) {
    const made = make("span", { className: "timebar" });
    for (const [kind, amount] of pieces) {
      const piece = make("i", { className: `fill ${kind}` });
      piece.style.width = `${(100 * amount) / (whole || 1)}%`;
      made.append(piece);
    }
    made.setAttribute("aria-hidden", "true");
    return made;
  }

  // Which of its times a bound is made of, in the colours of their regimes.
  const REGIMES = ["compute", "memory", "communication"];
  function boundPieces(result) {
    if (!result.parts.length) return [[result.regime, result.t_lower_s]];
    return REGIMES.map((regime) => [
      regime, result.parts.filter((part) => part.regime === regime).reduce((sum, part) => sum + part.t_lower_s, 0)]);
  }

  function timeRows(result, of, whole) {
    const { flop, bytes, link } = result;
    const composite = result.parts.length > 0;
    const peak = composite ? "each part on its own pipe" : `${si(flop, "FLOP")} / ${si(result.peak_flop_per_s, "FLOP/s")}`;
    const sent = link ? `${si(result.sent_bytes, "B")} sent / ${si(link.rate[0], "B/s")} of ${link.name} in one direction` : "";
    const pieces = {
      t_math_s: [["compute", result.t_math_s]],
      t_memory_s: [["memory", result.t_memory_s]],
      t_comms_s: [["communication", result.t_comms_s]],
    };
    const launches = ["overhead", result.launch_floor_s];
    const rows = [
      ["T math", "t_math_s", peak],
      ["T memory", "t_memory_s", `${si(bytes, "B")} / ${si(result.bandwidth_bytes_per_s, "B/s")}`],
      ...(link ? [["T comms", "t_comms_s", sent]] : []),
      ["At least", "t_lower_s", `perfect overlap: the longest of them${composite ? " for each part, added up" : ""}`],
      ["Without overlap", "t_upper_s", `their sum, and ${time(result.launch_floor_s).replace(/\.0+ /, " ")} for launches`],
    ];
    pieces.t_lower_s = boundPieces(result);
    pieces.t_upper_s = [...pieces.t_math_s, ...pieces.t_memory_s, ...pieces.t_comms_s, launches];
    return rows.map(([name, key, how]) => make("tr", {},
      make("th", { scope: "row" }, name),
      make("td", { className: "bars" }, bar(pieces[key], whole), make("small", {}, unbroken(how))),
      cell(result, key, time, of)));
  }

  function timesTable(results) {
    const whole = Math.max(...results.map((result) => result.t_upper_s));
    const bodies = results.map((result, i) => make("tbody", {},
      ...(results.length > 1 ? [make("tr", {}, make("th", { colSpan: 3, className: "who", scope: "rowgroup" }, result.gpu.short))] : []),
      ...timeRows(result, i ? "second" : "first", whole)));
    const head = make("tr", {}, make("th", {}, "Time"), make("th", {}, "One scale"), make("th", { className: "n" }, "Seconds"));
    return make("table", { className: "times" }, make("thead", { className: "visually-hidden" }, head), ...bodies);
  }

  const NUMBERS = [
    ["FLOPs", "flop", (value) => si(value, "FLOP")],
    ["Bytes, compulsory", "bytes", (value) => si(value, "B")],
    ["Intensity", "intensity", intensity],
    ["Ridge", "ridge", intensity],
    ["Regime", "regime", (value) => value],
    ["Peak, dense", "peak_flop_per_s", (value) => si(value, "FLOP/s")],
    ["Memory bandwidth", "bandwidth_bytes_per_s", (value) => si(value, "B/s")],
    ["Sent by each GPU", "sent_bytes", (value) => si(value, "B")],
    ["Link, one direction", "link_bytes_per_s", (value) => si(value, "B/s")],
    ["Attainable", "attainable_flop_per_s", (value) => si(value, "FLOP/s")],
    ["Of the peak", "share_of_peak", percent],
    ["Tokens per second, at best", "tokens_per_s", significant],
    ["Measured", "achieved_flop_per_s", (value) => si(value, "FLOP/s")],
    ["Measured, of its roof", "achieved_share_of_roof", percent],
    ["Speed-up left", "headroom", factor],
  ];

  const OF_FLOPS = ["intensity", "ridge", "peak_flop_per_s", "share_of_peak"];

  // One GPU: a grid of numbers; two: a table that sets them side by side.
  function numbersOf(results) {
    const [first] = results;
    const silent = [...(first.flop ? [] : OF_FLOPS), ...(first.link ? [] : ["sent_bytes"])];
    const shown = NUMBERS.filter(([, key]) => !silent.includes(key) && results.some((result) => (result[key] ?? null) !== null));
    if (results.length === 1) {
      return make("dl", { className: "tiles" }, ...shown.map(([name, key, text]) => make("div", {},
        make("dt", {}, name), cell(first, key, text, "first", "dd"))));
    }
    const rows = shown.map(([name, key, text]) => make("tr", {}, make("th", { scope: "row" }, name),
      ...results.map((result, i) => cell(result, key, text, i ? "second" : "first"))));
    const heads = results.map((result) => make("th", { className: "n", scope: "col" }, result.gpu.short));
    return make("table", { className: "numbers" }, make("thead", {}, make("tr", {}, make("td"), ...heads)), make("tbody", {}, ...rows));
  }

  function partsTable(result) {
    const head = ["Part", "Share of the lower bound", "", "At least", "FLOP/B", "Regime"].map((text, i) => (
      make("th", { className: [2, 3, 4].includes(i) ? "n" : "" }, text)));
    const parts = [...result.parts].sort((a, b) => b.t_lower_s - a.t_lower_s);
    const rows = parts.map((part) => make("tr", { className: "part" },
      make("th", { scope: "row" }, part.count > 1 ? `${part.count.toLocaleString("en")} x ${part.label}` : part.label),
      make("td", { className: "bars" }, bar([[part.regime, part.t_lower_s]], parts[0].t_lower_s)),
      make("td", { className: "n" }, unbroken(percent(result.t_lower_s ? part.t_lower_s / result.t_lower_s : 0))),
      cell(part, "t_lower_s", time, part.label),
      cell(part, "intensity", (value) => significant(value), part.label),
      make("td", {}, part.regime)));
    return make("table", { className: "live-parts" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
  }

  function sources({ gpu, parts, peak, link }) {
    const pipes = new Set([peak, ...parts.filter((part) => part.flop).map((part) => part.peak)]);
    const named = [...pipes].map((key) => [label(key), gpu.peaks[key], "FLOP/s"]);
    const found = [...named, [gpu.memory, gpu.bandwidth, "B/s"]];
    if (gpu.l2) found.push(["L2", gpu.l2, "B/s"]);
    if (link) found.push([link.name, link.rate, "B/s in one direction"]);
    return `${gpu.short}: ${found.map(([name, [value, source], unit]) => `${name} ${si(value, unit)} (${all.sources[source]})`).join("; ")}.`;
  }

  function inCache({ gpu, bytes }) {
    if (!gpu.l2_bytes) return "";
    return bytes <= gpu.l2_bytes
      ? `These bytes fit into the L2 cache of ${si(gpu.l2_bytes, "B")}: where they lie there already, the steeper roof counts.`
      : `These bytes do not fit into the L2 cache of ${si(gpu.l2_bytes, "B")}.`;
  }

  function show(busy) {
    const results = [predict(state.gpu), ...(state.vs && state.vs !== state.gpu ? [predict(state.vs)] : [])];
    const refused = results.find((result) => result.refusal);
    refusal.hidden = !refused;
    refusal.textContent = refused ? `${refused.refusal.replaceAll("`", "")}.` : "";
    box.classList.toggle("refused", Boolean(refused));
    showControls(busy);
    if (refused) return;
    const [first] = results;
    const sign = document.createElement("span");
    sign.className = `sign ${first.regime}`;
    box.querySelector("#answer").replaceChildren(sign, unbroken(sentence(first)));
    const figure = svg.closest("figure");
    figure.hidden = !results.some((result) => placed(result) || result.parts.some(placed));
    if (!figure.hidden) drawPlane(results);
    const parts = first.parts.length ? [partsTable(first)] : [];
    box.querySelector("#times").replaceChildren(timesTable(results), ...parts);
    box.querySelector("#numbers").replaceChildren(numbersOf(results));
    box.querySelector("#in-cache").textContent = unbroken(inCache(first));
    box.querySelector("#live-sources").textContent = unbroken(results.map(sources).join(" "));
  }

  function change(part, busy) {
    const before = state.op;
    remembered.set(before, { sizes: state.sizes, together: state.together });
    state = { ...state, ...part };
    if (state.op !== before) sizeControls();
    show(busy);
    clearTimeout(waiting);
    waiting = setTimeout(save, WRITE_AFTER_MS);
  }

  // ---- What readers do.

  function typed(input) {
    const size = operation().sizes.find((one) => one.name === input.name);
    const value = input.value.trim() === "" ? NaN : Number(input.value);
    if (fits(size, value)) {
      input.removeAttribute("aria-invalid");
      change({ sizes: withSize(size.name, value) }, input);
    } else {
      input.setAttribute("aria-invalid", "true");
      refusal.textContent = `${words(size.name)} must be a whole number from ${size.least} to ${size.most.toLocaleString("en")}.`;
      refusal.hidden = false;
    }
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => {
    if (target.name === "op") {
      const name = target.value;
      const sizes = startSizes(name);
      change({ op: name, sizes, together: alike(name, sizes), ...remembered.get(name), achieved: null });
    } else if (["gpu", "vs", "dtype", "link"].includes(target.name)) change({ [target.name]: target.value });
    else if (target.name === "achieved") change({ achieved: Number(target.value) > 0 ? Number(target.value) : null }, target);
    else if (target.name === "together") change({ together: target.checked });
    else if (target.type === "range") change({ sizes: withSize(target.name, target.values[Number(target.value)]) }, target);
    else if (target.type === "checkbox") change({ sizes: { ...state.sizes, [target.name]: Number(target.checked) } });
    else typed(target);
  });
  // A number that was left unfinished goes back to the one that counts.
  form.addEventListener("change", ({ target }) => {
    if (target.type === "number") show();
  });
  box.querySelector("#reset").addEventListener("click", () => {
    change(begin());
    remembered.clear();
  });
  addEventListener("hashchange", () => {
    const text = location.hash.slice(1);
    if (!isState(text) && text !== "") return;
    state = read(text);
    sizeControls();
    show();
  });

  if (isState(location.hash.slice(1))) state = read(location.hash.slice(1));
  box.hidden = false;
  for (const element of document.querySelectorAll("[data-replaced]")) element.hidden = true;
  sizeControls();
  show();
  let width = svg.clientWidth;
  new ResizeObserver(() => {
    if (svg.clientWidth === width) return;
    width = svg.clientWidth;
    show(document.activeElement);
  }).observe(svg);

  // ---- Pictures.

  const saveAs = (name, address) => make("a", { href: address, download: name }).click();
  for (const button of box.querySelectorAll("[data-export]")) {
    button.addEventListener("click", () => {
      const address = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(lens.plane.picture(svg))}`;
      if (button.dataset.export === "svg") {
        saveAs(`rooflens-${state.op}.svg`, address);
        return;
      }
      const image = new Image();
      image.addEventListener("load", () => {
        const canvas = make("canvas", { width: 2 * svg.clientWidth, height: 2 * svg.clientHeight });
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        saveAs(`rooflens-${state.op}.png`, canvas.toDataURL("image/png"));
      });
      image.src = address;
    });
  }
})();
