// The bar: filters, the level of the rooflines, what is isolated, links to the parts of the page, and Escape.
(() => {
  const byId = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const NAME_CHARS = 64;
  const count = new Intl.NumberFormat("en");
  const more = document.querySelector("#filters .more");
  const narrow = matchMedia("(max-width: 720px)");

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
    const writes = event.target.closest?.("input:not([type=radio], [type=checkbox], [type=range]), select, textarea");
    if (!writes && !event.ctrlKey && !event.metaKey && !event.altKey) {
      if (event.key === "/" && byId("search")) {
        event.preventDefault();
        byId("search").focus();
      }
    }
    if (event.key !== "Escape" || event.defaultPrevented || byId("keys").open) return;
    if (more?.open) closeMore(true);
    else if (lens.state.k) lens.set({ k: "" });
    else if (lens.filtered()) lens.clear();
  });
  // Rarely used filters open below their button, and close where something else is pressed.
  function closeMore(back) {
    more.open = false;
    if (back) more.querySelector("summary").focus();
  }
  if (more && !narrow.matches) {
    addEventListener("pointerdown", (event) => {
      if (more.open && !more.contains(event.target)) closeMore(false);
    });
  }

  function toggled(verdict) {
    const { verdicts } = lens.state;
    return verdicts.includes(verdict) ? verdicts.filter((one) => one !== verdict) : [...verdicts, verdict];
  }

  // From the choices to the page.
  const fresh = new Map(all("#filters .more select, #filters .more input").map((field) => [field, field.value]));
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
    showLevel(state);
    showCounts();
    showIsolated();
  }

  // The level belongs to the roofline in sight: without a choice it is the one that this roofline opens with.
  function showLevel(state) {
    const plane = document.querySelector(".plane:not([hidden])");
    if (!plane) return;
    byId("roofline-title").textContent = plane.dataset.heading;
    const known = plane.dataset.levels.split(" ");
    const level = known.includes(state.level) ? state.level : plane.dataset.level;
    for (const radio of all(".levels input")) {
      radio.checked = radio.value === level;
      radio.disabled = !known.includes(radio.value);
    }
  }

  // Those that failed are counted apart, as everywhere.
  const sum = (items, isFailed = false) =>
    items.reduce((launches, item) => launches + ((item.bound === "failed") === isFailed ? item.n : 0), 0);
  function showCounts() {
    const hidden = lens.hidden();
    const items = [...lens.items.values()];
    const every = sum(items);
    const shown = items.filter((item) => !hidden[item.k]);
    const left = sum(shown), failed = sum(shown, true);
    const tally = byId("tally");
    const { noun } = tally?.parentElement.dataset || {};
    const apart = failed ? `, ${lens.format.count(failed, `failed ${noun}`)}` : "";
    const text = lens.filtered() && noun ? `${count.format(left)} of ${lens.format.count(every, noun)}${apart}` : "";
    const others = tally?.parentElement.dataset.others;
    const grouped = Number((others || "0").replaceAll(",", ""));
    const rest = grouped ? ` (${others} grouped)` : "";
    if (tally) tally.textContent = text || (rest ? `${lens.format.count(every + grouped, noun)}${rest}` : "");
    if (byId("clear")) byId("clear").hidden = !lens.filtered();
    if (byId("shown")) byId("shown").textContent = text;
    document.documentElement.classList.toggle("filtered", lens.filtered());
    // A chip counts what pressing it alone would leave.
    const without = lens.hidden({ verdicts: [] });
    for (const chip of all("[data-verdict]")) {
      const mine = items.filter((item) => item.bound === chip.dataset.verdict && !without[item.k]);
      chip.querySelector("small").textContent = count.format(sum(mine, chip.dataset.verdict === "failed"));
    }
    if (more) {
      const set = [...more.querySelectorAll("select, input")].filter((field) => field.value !== fresh.get(field));
      byId("more-set").textContent = set.length ? `(${set.length})` : "";
    }
  }

  function showIsolated() {
    const bar = byId("isolated");
    const item = lens.picked();
    if (!bar) return;
    bar.hidden = !item;
    if (!item) return;
    const card = lens.cards?.get(item.k);
    const sign = document.querySelector(`#selectors [data-verdict="${item.bound}"] .shape`) || card?.querySelector(".shape");
    bar.querySelector(".sign").replaceChildren(...(sign ? [sign.cloneNode(true)] : []));
    const name = bar.querySelector(".name");
    name.textContent = lens.format.cut(item.name, NAME_CHARS);
    name.href = card ? `#${item.k}` : "#kernels";
    name.title = card ? "Open its card" : "To the table";
    bar.querySelector(".sentence-line").textContent = card?.querySelector(".answer b")?.textContent || item.bound;
  }

  // On a telephone the selectors start folded, unless a shared view uses them.
  function fold(folded) {
    byId("fold").setAttribute("aria-expanded", String(!folded));
    byId("bar").classList.toggle("folded", folded);
  }
  if (byId("fold")) {
    byId("fold").addEventListener("click", () => fold(byId("fold").getAttribute("aria-expanded") === "true"));
    narrow.addEventListener("change", () => fold(narrow.matches));
    fold(narrow.matches && !lens.filtered());
  }

  // What is folded opens where the address leads to it, and on paper; anchors stop below the bar, however high it is.
  function unfold() {
    const target = location.hash.length > 1 && byId(location.hash.slice(1));
    const part = target && (target.querySelector(":scope > details.part") || target.closest("details.part"));
    if (!part || part.open) return;
    part.open = true;
    if (part.contains(target)) target.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  document.addEventListener("DOMContentLoaded", unfold);
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:is(.part, .caveats):not([open])");
    for (const part of opened) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of opened) part.open = false;
  });
  const bar = byId("bar");
  const measure = () => document.documentElement.style.setProperty("--bar", `${bar.offsetHeight}px`);
  if (bar) new ResizeObserver(measure).observe(bar);
  lens.on(show);
})();
