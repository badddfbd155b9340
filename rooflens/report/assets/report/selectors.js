// Selectors: the controls above the charts, the level of the roofline, what is isolated, and Escape.
(() => {
  const byId = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const NAME_CHARS = 64;
  const count = new Intl.NumberFormat("en");
  const narrow = matchMedia("(max-width: 720px)");

  for (const element of all(".scripted")) element.hidden = false;

  // From the page to the choices.
  const listen = (element, event, part) => element?.addEventListener(event, () => lens.set(part(element)));
  for (const list of all("[data-choice]")) listen(list, "change", () => ({ [list.dataset.choice]: list.value }));
  for (const chip of all("[data-verdict]")) listen(chip, "click", () => ({ verdicts: toggled(chip.dataset.verdict) }));
  for (const radio of all(".levels input")) listen(radio, "change", () => ({ level: radio.value }));
  listen(byId("top"), "input", (slider) => ({ top: Number(slider.value) }));
  listen(byId("search"), "input", (field) => ({ q: field.value }));
  byId("clear")?.addEventListener("click", () => {
    lens.clear();
    byId("search").focus();
  });
  byId("show-all")?.addEventListener("click", () => lens.set({ k: "" }));
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    if (lens.state.k) lens.set({ k: "" });
    else if (lens.filtered()) lens.clear();
  });
  for (const line of all(".ranking li")) {
    const key = line.querySelector("a[href^='#k']")?.hash.slice(1);
    line.dataset.k = key;
    line.addEventListener("click", (event) => {
      if (!event.target.closest("a") && getSelection().isCollapsed) lens.set({ k: key === lens.state.k ? "" : key });
    });
  }

  function toggled(verdict) {
    const { verdicts } = lens.state;
    return verdicts.includes(verdict) ? verdicts.filter((one) => one !== verdict) : [...verdicts, verdict];
  }

  // From the choices to the page.
  function show(state) {
    for (const list of all("[data-choice]")) list.value = state[list.dataset.choice];
    for (const chip of all("[data-verdict]")) {
      chip.setAttribute("aria-pressed", String(state.verdicts.includes(chip.dataset.verdict)));
    }
    if (byId("top")) {
      byId("top").value = state.top;
      byId("top-text").textContent = `${state.top}\u00a0%`;
      byId("top").setAttribute("aria-valuetext", `${state.top} % of GPU time`);
    }
    if (byId("search") && byId("search").value !== state.q) byId("search").value = state.q;
    showCounts();
    showIsolated();
  }

  function showCounts() {
    const hidden = lens.hidden();
    const sum = (items) => items.reduce((launches, item) => launches + item.n, 0);
    const every = sum([...lens.items.values()]);
    const left = sum([...lens.items.values()].filter((item) => !hidden[item.k]));
    const noun = every === 1 ? "launch" : "launches";
    const text = lens.filtered() ? `${count.format(left)} of ${count.format(every)} ${noun}` : "";
    const tally = byId("tally");
    const others = tally?.parentElement.dataset.others;
    const rest = others ? `, ${others} more in one sum` : "";
    if (tally) tally.textContent = text || `${count.format(every)} ${noun}${rest}`;
    if (byId("clear")) byId("clear").hidden = !lens.filtered();
    byId("shown").textContent = text;
    document.documentElement.classList.toggle("filtered", lens.filtered());
  }

  function showIsolated() {
    const bar = byId("isolated");
    const item = lens.picked();
    for (const line of all(".ranking li")) line.classList.toggle("current", Boolean(item) && isOf(line.dataset.k, item));
    if (!bar) return;
    bar.hidden = !item;
    if (!item) return;
    const sign = document.querySelector(`#selectors [data-verdict="${item.bound}"] .shape, #${item.k} .shape`);
    bar.querySelector(".sign").replaceChildren(...(sign ? [sign.cloneNode(true)] : []));
    const name = bar.querySelector(".name");
    const card = byId(item.k);
    name.textContent = short(item.name);
    name.href = card ? `#${item.k}` : "#kernels";
    name.title = card ? "Open its card" : "To the table";
    bar.querySelector(".sentence-line").textContent = card?.querySelector(".sentence")?.textContent || item.bound;
  }
  const short = (name) => {
    const half = NAME_CHARS / 2;
    return name.length > NAME_CHARS ? `${name.slice(0, half)}\u2026${name.slice(-half)}` : name;
  };
  const isOf = (key, item) => key === item.k || (item.g !== "" && lens.items.get(key)?.g === item.g);

  // On a telephone the selectors start folded, unless a shared view uses them.
  function fold(folded) {
    byId("fold").setAttribute("aria-expanded", String(!folded));
    byId("selectors").classList.toggle("folded", folded);
  }
  if (byId("fold")) {
    byId("fold").addEventListener("click", () => fold(byId("fold").getAttribute("aria-expanded") === "true"));
    narrow.addEventListener("change", () => fold(narrow.matches));
    fold(narrow.matches && !lens.filtered());
  }
  lens.on(show);
})();
