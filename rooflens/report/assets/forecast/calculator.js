// The calculator: what is chosen stands in the address, and every result is worked out from it.
(() => {
  const box = document.getElementById("calculator");
  const all = lens.data("calculator-data");
  const results = lens.results(all);
  const { make } = results;
  const form = box.querySelector("form");
  const refusal = form.querySelector(".refusal");
  const svg = box.querySelector("svg.live");
  const CHOICES = ["gpu", "vs", "dtype", "out_dtype", "link"];
  const WRITE_AFTER_MS = 120;

  // ---- What is chosen.

  const own = (object, key) => (Object.hasOwn(object, key) ? object[key] : undefined);

  function startSizes(name) {
    if (name === all.start.operation) return { ...all.start.sizes };
    return Object.fromEntries(all.operations[name].sizes.map((size) => [size.name, size.start]));
  }

  // Sizes that may move together do so where they are alike.
  function alike(name, sizes) {
    const { together } = all.operations[name];
    return together.length > 0 && together.every((size) => sizes[size] === sizes[together[0]]);
  }

  function begin(name = all.start.operation) {
    const { gpu, dtype, out_dtype, link, measured } = all.start;
    const sizes = startSizes(name);
    return { op: name, gpu, vs: "", dtype, out_dtype, link, measured, sizes, together: alike(name, sizes) };
  }
  let state = begin();
  const remembered = new Map();
  const operation = () => all.operations[state.op];

  // ---- The address: what differs from the start.

  const isState = (text) => text.includes("=");
  const fits = (size, value) => Number.isInteger(value) && value >= size.least && value <= size.most;

  function read(text) {
    const given = new URLSearchParams(text);
    const found = begin(own(all.operations, given.get("op")) ? given.get("op") : undefined);
    if (own(all.gpus, given.get("gpu"))) found.gpu = given.get("gpu");
    if (own(all.gpus, given.get("vs"))) found.vs = given.get("vs");
    if (own(all.dtypes, given.get("dtype"))) found.dtype = given.get("dtype");
    if (["", ...Object.keys(all.dtypes)].includes(given.get("out_dtype"))) found.out_dtype = given.get("out_dtype");
    if (["", ...all.links].includes(given.get("link"))) found.link = given.get("link");
    if (given.has("measured")) found.measured = positive(given.get("measured"));
    for (const size of all.operations[found.op].sizes) {
      const value = Number(given.get(size.name) ?? NaN);
      if (fits(size, value)) found.sizes[size.name] = value;
    }
    found.together = alike(found.op, found.sizes) && given.get("together") !== "0";
    return found;
  }

  const positive = (text) => (Number(text) > 0 && Number.isFinite(Number(text)) ? Number(text) : null);

  function written() {
    const text = new URLSearchParams();
    const usual = begin(state.op);
    if (state.op !== all.start.operation) text.set("op", state.op);
    for (const key of [...CHOICES, "measured"]) if (state[key] !== usual[key]) text.set(key, state[key] ?? "");
    for (const [name, value] of Object.entries(state.sizes)) if (value !== usual.sizes[name]) text.set(name, value);
    if (alike(state.op, state.sizes) && !state.together) text.set("together", "0");
    return text.toString();
  }

  // Browsers refuse more than some hundred changes of the address a minute: a dragged slider writes where it rests.
  let waiting = 0;
  function save() {
    const text = written();
    if (text === fragment() || (text === "" && !isState(fragment()))) return;
    try {
      history.replaceState(history.state, "", `${location.pathname}${location.search}${text ? `#${text}` : ""}`);
    } catch {
      // A page that may not write its address still works; only the view cannot be shared.
    }
  }

  // ---- The forecast.

  const LINKS = { nvlink: "NVLink", pcie: "PCIe" };
  const pipe = (gpu, dtype, unit) => all.dtypes[dtype][unit].find((name) => name in gpu.peaks);

  // The link that was chosen, else the fastest one, if it joins so many GPUs.
  function linkOf(gpu, group) {
    const kinds = state.link ? [state.link] : all.links;
    const kind = kinds.find((one) => gpu.links[one] && group <= (gpu.links[one].joins ?? Infinity));
    return kind ? { kind, ...gpu.links[kind] } : null;
  }

  // Why these sizes cannot be predicted on a GPU, or the link that they need.
  function check(gpu, sizes) {
    const { refusal, group } = lens.programs.check(operation(), sizes);
    const link = group > 1 ? linkOf(gpu, group) : null;
    if (refusal || group === 1 || link) return { refusal, link };
    const kind = LINKS[state.link] || "link";
    return { refusal: `${gpu.name} has no ${kind} that joins ${group.toLocaleString("en")} GPUs`, link };
  }

  function predict(gpuId) {
    const gpu = all.gpus[gpuId];
    const program = operation();
    const type = all.dtypes[state.dtype];
    const inputs = { ...state.sizes, element_bytes: type.bytes, bandwidth: gpu.bandwidth[0] };
    // A time is that of one GPU.
    inputs.measured = gpuId === state.gpu && state.measured ? state.measured / 1e3 : null;
    inputs.result_bytes = program.has_results ? all.dtypes[state.out_dtype || type.result].bytes : type.bytes;
    for (const unit of program.units) {
      const name = pipe(gpu, state.dtype, unit);
      if (!name) return { refusal: `${gpu.name} has no published peak for ${state.dtype}` };
      inputs[`${unit} pipe`] = name;
      [inputs[`${unit} peak`]] = gpu.peaks[name];
      inputs[`${unit} special`] = type.special && gpu.special ? gpu.special * gpu.clocks[name] : Infinity;
      inputs[`${unit} issued`] = gpu.issued ? gpu.issued * gpu.clocks[name] : Infinity;
    }
    inputs["l2 rate"] = gpu.l2 ? gpu.l2[0] : Infinity;
    const { refusal, link } = check(gpu, state.sizes);
    if (refusal) return { refusal };
    if (link) [inputs.link, inputs["link rate"]] = [link.kind, link.rate[0]];
    return { ...lens.programs.forecast(program, inputs), published: program.published, gpu, link };
  }

  // ---- Sliders: eight steps an octave, only those that fit the other sizes.

  const STEPS_AN_OCTAVE = 8;
  const LARGEST_START = 4096;
  const OCTAVES = { below: 14, above: 6 };

  function marks(size) {
    const octave = Math.floor(Math.log2(Math.max(1, startSizes(state.op)[size.name])));
    const high = Math.min(size.most, Math.max(LARGEST_START, 2 ** (octave + OCTAVES.above)));
    const found = new Set(size.least === 0 ? [0] : []);
    for (let low = Math.max(1, 2 ** (octave - OCTAVES.below)); low < high; low *= 2) {
      for (let step = 0; step < STEPS_AN_OCTAVE; step += 1) found.add(Math.floor(low * (1 + step / STEPS_AN_OCTAVE)));
    }
    found.add(high);
    return [...found].filter((value) => value >= size.least && value <= size.most);
  }

  function withSize(name, value) {
    const { together } = operation();
    const names = state.together && together.includes(name) ? together : [name];
    return { ...state.sizes, ...Object.fromEntries(names.map((one) => [one, value])) };
  }
  function allowed(size) {
    const gpu = all.gpus[state.gpu];
    return marks(size).filter((value) => !check(gpu, withSize(size.name, value)).refusal);
  }

  function nearest(values, wanted) {
    const far = (value) => Math.abs(Math.log((value + 0.5) / (wanted + 0.5)));
    return values.reduce((best, value, i) => (far(value) < far(values[best]) ? i : best), 0);
  }

  // ---- Controls.

  const isSwitch = (size) => size.most === 1;
  const words = (name) => name.replaceAll("_", " ");

  function sizeControl(size) {
    const id = `size-${size.name}`;
    if (isSwitch(size)) {
      const input = make("input", { type: "checkbox", name: size.name, id });
      return make("label", { className: "check" }, input, make("span", {}, size.meaning.replace(/^1: /, "")));
    }
    const bounds = { min: size.least, max: size.most, step: 1, inputMode: "numeric" };
    const number = make("input", { type: "number", name: size.name, id, ...bounds });
    number.setAttribute("aria-describedby", `${id}-means`);
    const slider = make("input", { type: "range", name: size.name, min: 0, step: 1 });
    slider.setAttribute("aria-label", `${words(size.name)}, slider`);
    const label = make("label", { htmlFor: id }, make("b", {}, words(size.name)));
    return make("div", { className: "size" }, label, number, slider, make("small", { id: `${id}-means` }, size.meaning));
  }

  function rebuild() {
    form.querySelector(".sizes").replaceChildren(...operation().sizes.map(sizeControl));
  }

  // The one that a reader moves keeps its marks; a field that is typed in keeps its text.
  function showSize(size, input, busy) {
    const value = state.sizes[size.name];
    if (input.type === "checkbox") input.checked = value === 1;
    else if (input.type === "range") {
      if (input !== busy || !input.marks) input.marks = allowed(size);
      if (!input.marks.length) input.marks = [value];
      input.max = input.marks.length - 1;
      input.value = nearest(input.marks, value);
      input.setAttribute("aria-valuetext", value.toLocaleString("en"));
    } else if (input !== busy) {
      input.value = value;
      input.removeAttribute("aria-invalid");
    }
  }

  function showControls(busy) {
    const { elements } = form;
    const { units, together, shared } = operation();
    const gpu = all.gpus[state.gpu];
    elements.op.value = state.op;
    for (const name of CHOICES) elements[name].value = state[name];
    for (const option of elements.dtype.options) option.disabled = units.some((unit) => !pipe(gpu, option.value, unit));
    for (const option of elements.link.options) option.disabled = option.value !== "" && !gpu.links[option.value];
    elements.link.closest(".field").hidden = !shared;
    elements.out_dtype.closest(".field").hidden = !operation().has_results;
    if (elements.measured !== busy) {
      elements.measured.value = state.measured === null ? "" : state.measured;
    }
    const check = form.querySelector(".together");
    check.hidden = together.length === 0;
    check.querySelector("span").textContent = `Move ${together.slice(0, -1).join(", ")} and ${together.at(-1)} together`;
    check.querySelector("input").checked = state.together;
    for (const size of operation().sizes) {
      for (const input of form.querySelectorAll(`.sizes [name="${size.name}"]`)) showSize(size, input, busy);
    }
  }

  // ---- Results.

  // The sizes that are not as usual: `m = n = k = 4,096`.
  function sizesText() {
    const names = operation().sizes.filter((size) => state.sizes[size.name] !== size.default).map((size) => size.name);
    const text = (name) => state.sizes[name].toLocaleString("en");
    const values = new Set(names.map((name) => state.sizes[name]));
    if (names.length > 1 && values.size === 1) return `${names.join(" = ")} = ${text(names[0])}`;
    return names.map((name) => `${name} ${text(name)}`).join(", ") || "usual sizes";
  }

  // The plane's width is asked for once, and then told: asking again would lay the page out at every change.
  let width = 0;
  const subject = () => `${state.op}, ${state.dtype}: ${sizesText()}`;

  // A page of one prediction is named after what it shows.
  const asked = document.getElementById("as-asked");
  function name(found) {
    if (!asked) return;
    document.title = `${subject()} \u00b7 rooflens`;
    document.querySelector("h1").textContent = subject();
    document.querySelector(".facts :last-child").textContent = found.map((result) => result.gpu.name).join(" and ");
    asked.hidden = written() === "";
  }

  function drawPlane(found) {
    const figure = svg.closest("figure");
    figure.hidden = !found.some(results.drawable);
    if (figure.hidden) return;
    if (!width) width = svg.clientWidth;
    lens.plane.draw(svg, width, results.scene(found, subject()));
    const [{ gpu }] = found;
    const said = `${results.sentence(found[0])} Roofline of ${gpu.name}; the tables below hold the same data.`;
    svg.setAttribute("aria-label", said);
  }

  function refuse(why) {
    refusal.hidden = !why;
    refusal.textContent = why ? `${why.replaceAll("`", "")}.` : "";
  }

  function show(busy) {
    const tried = [state.gpu, ...(state.vs && state.vs !== state.gpu ? [state.vs] : [])].map((gpu) => predict(gpu));
    const [first] = tried;
    // What only the second GPU cannot do is said, and the first one shown.
    refuse(tried.find((result) => result.refusal)?.refusal);
    box.classList.toggle("refused", Boolean(first.refusal));
    showControls(busy);
    if (first.refusal) return;
    const found = tried.filter((result) => !result.refusal);
    box.querySelector("#answer").replaceChildren(...results.answer(first));
    name(found);
    drawPlane(found);
    const parts = first.parts.length ? [results.parts(first)] : [];
    box.querySelector("#times").replaceChildren(results.times(found), ...parts);
    box.querySelector("#numbers").replaceChildren(results.numbers(found));
    const published = box.querySelector("#published");
    published.replaceChildren(...results.publishers(first));
    published.hidden = first.attainable_points === 0;
    box.querySelector("#in-cache").textContent = results.inCache(first);
    box.querySelector("#live-sources").textContent = found.map(results.sources).join(" ");
  }

  // ---- What readers do.

  function change(part, busy) {
    const before = state;
    remembered.set(before.op, { sizes: before.sizes, together: before.together });
    state = { ...before, ...part };
    if (state.op !== before.op) rebuild();
    show(busy);
    clearTimeout(waiting);
    waiting = setTimeout(save, WRITE_AFTER_MS);
  }

  function chooseOperation(op) {
    const sizes = startSizes(op);
    // A type that was the usual one gives way to the usual one of the new operation.
    const dtype = state.dtype === operation().dtype ? all.operations[op].dtype : state.dtype;
    change({ op, dtype, sizes, together: alike(op, sizes), ...remembered.get(op), measured: null });
  }

  // Sizes that are to move together start from the first of them.
  function moveTogether(together) {
    const names = together ? operation().together : [];
    const value = state.sizes[names[0]];
    change({ together, sizes: { ...state.sizes, ...Object.fromEntries(names.map((name) => [name, value])) } });
  }

  function type(input) {
    const size = operation().sizes.find((one) => one.name === input.name);
    const value = input.value.trim() === "" ? NaN : Number(input.value);
    if (fits(size, value)) {
      input.removeAttribute("aria-invalid");
      change({ sizes: withSize(size.name, value) }, input);
      return;
    }
    input.setAttribute("aria-invalid", "true");
    const most = size.most.toLocaleString("en");
    refuse(`${words(size.name)} must be a whole number from ${size.least} to ${most}`);
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => {
    const { name } = target;
    if (name === "op") chooseOperation(target.value);
    else if (CHOICES.includes(name)) change({ [name]: target.value });
    else if (name === "measured") change({ measured: positive(target.value) }, target);
    else if (name === "together") moveTogether(target.checked);
    else if (target.type === "range") change({ sizes: withSize(name, target.marks[Number(target.value)]) }, target);
    else if (target.type === "checkbox") change({ sizes: withSize(name, Number(target.checked)) });
    else type(target);
  });
  // A number that was left unfinished goes back to the one that counts.
  form.addEventListener("change", ({ target }) => {
    if (target.type === "number") show();
  });
  box.querySelector("#reset").addEventListener("click", () => {
    change(begin());
    remembered.clear();
  });

  const fragment = () => location.hash.slice(1);
  function follow() {
    state = read(isState(fragment()) ? fragment() : "");
    rebuild();
    show();
  }
  addEventListener("hashchange", () => {
    if (isState(fragment()) || fragment() === "") follow();
  });

  // ---- Pictures.

  const download = (kind, href) => make("a", { href, download: `rooflens-${state.op}.${kind}` }).click();
  for (const button of box.querySelectorAll("[data-save]")) {
    button.addEventListener("click", () => {
      const drawing = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(lens.plane.picture(svg))}`;
      if (button.dataset.save === "svg") {
        download("svg", drawing);
        return;
      }
      const image = new Image();
      image.addEventListener("load", () => {
        const canvas = make("canvas", { width: 2 * svg.clientWidth, height: 2 * svg.clientHeight });
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        download("png", canvas.toDataURL("image/png"));
      });
      image.src = drawing;
    });
  }

  // ---- Begin: what the page shows without scripts gives way.

  box.hidden = false;
  for (const element of document.querySelectorAll("[data-replaced]")) element.hidden = true;
  follow();
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (!now || now === width) return;
    width = now;
    show(document.activeElement);
  }).observe(svg);
})();
