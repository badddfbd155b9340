"use strict";
/*
 * lens: what the page shows, in one place.
 *
 * lens.state      the choices; "" (or [], 100) means no choice was made
 * lens.set(part)  merges choices, writes the address's fragment, and tells every listener; a filter, a level or a zoom is a step
 *                 that Back undoes
 * lens.join(key) shows the kernel of a launch with those that were joined before, and no other; again lets it go
 * lens.save()     writes the fragment at once
 * lens.on(fn)     fn(state, before) runs when the first screen is ready, when the page is, and after every change
 * lens.items      launch key -> {k, g, n, name, gpu, r, bound, precision, range, process, device, ns, won, o, tier, full, cum};
 *                 of a trace's page the mark of a row -> {k, g, n, bound, stream: [], rank: []}
 * lens.hidden()   {key: true} of the launches that the filters leave out; the same object while they stay the same
 * lens.hidden({verdicts: []})   what they would leave out with some choices changed
 * lens.picked()   the item of the isolated launch, or null
 * lens.linked()   the launch that the address links to by `#k3`, or ""
 * lens.filtered(), lens.clear()   whether any filter is set; lift them all
 * lens.ranks()    numbers of the ranking by launch key where filters changed it, or null; a page without a ranking has none
 * lens.words()    launch key -> what its line in the list says; a page without a list has none
 * lens.data(id)   the parsed content of a JSON block
 * lens.fileName(end)  what a file is called that is saved from this page: after the report
 * lens.picture(scale) the timeline, else the first chart in sight, as a canvas; null without either
 */
const lens = (() => {
  const DEFAULTS = Object.freeze({
    gpu: "", report: "", level: "", precision: "", verdicts: Object.freeze([]), range: "", process: "", device: "", stream: "", rank: "",
    top: 100, q: "", k: "", only: "", move: "", loop: "", zoom: "", at: "", sort: "", cols: "", mark: "",
  });
  const FILTERS = ["only", "gpu", "report", "precision", "verdicts", "range", "process", "device", "stream", "rank", "top", "q"];
  const EXACT = {
    gpu: "gpu", report: "r", precision: "precision", range: "range", process: "process", device: "device", stream: "stream",
    rank: "rank",
  };
  const STEPS = [...FILTERS, "level", "zoom"];
  const WRITE_AFTER_MS = 120;
  const ONE_STEP_MS = 1500;

  const data = (id) => {
    const block = document.getElementById(id);
    return block ? JSON.parse(block.textContent) : null;
  };
  const report = document.title.replace(/ \u00b7 rooflens$/, "").replace(/[^\p{L}\p{N}_.@-]+/gu, "_").slice(0, 80) || "rooflens";
  const fileName = (end) => `${report}-${end}`;
  const items = new Map((data("items") || []).map((item) => [item.k, item]));
  const listeners = [];
  let state = { ...DEFAULTS };

  // The fragment: `#k=k3&level=l2`; `#k3` alone is a link to a kernel's card, and any other word an ordinary anchor.
  const fragment = () => location.hash.slice(1);
  const linked = () => (items.has(fragment()) ? fragment() : "");
  const isState = (text) => text === "" || text.includes("=");

  function read(text) {
    const given = new URLSearchParams(text);
    const found = { ...DEFAULTS };
    for (const key of Object.keys(DEFAULTS)) {
      const value = given.get(key);
      if (value !== null) found[key] = value;
    }
    if (given.has("verdicts")) found.verdicts = given.get("verdicts").split(",").filter(Boolean);
    found.top = Math.min(100, Math.max(1, Math.round(Number(found.top)) || 100));
    if (!items.has(found.k)) found.k = "";
    return found;
  }

  function write() {
    const text = new URLSearchParams();
    for (const [key, value] of Object.entries(state)) {
      if (String(value) !== String(DEFAULTS[key])) text.set(key, String(value));
    }
    // Commas and slashes are plain in a fragment; without the escapes a shared address can be read.
    return text.toString().replaceAll("%2C", ",").replaceAll("%2F", "/");
  }

  // Browsers refuse more than some hundred changes of the address a minute: a dragged slider writes where it rests.
  // What is dragged or typed in one go is one step.
  let waiting = 0;
  let address = fragment();
  let written = { text: "", key: "", ms: -Infinity };
  const steps = () => JSON.stringify(STEPS.map((key) => state[key]));
  function stepOf(before) {
    const was = JSON.parse(before);
    return STEPS.filter((key, i) => String(state[key]) !== String(was[i])).join();
  }
  function save() {
    clearTimeout(waiting);
    const text = write();
    const key = stepOf(written.text || steps());
    const isStep = key !== "" && !(key === written.key && performance.now() - written.ms < ONE_STEP_MS);
    if (key !== "") written = { text: steps(), key, ms: performance.now() };
    if (fragment() !== address) return; // somebody changed it, and its listener has yet to run
    if (text === fragment() || (text === "" && !isState(fragment()) && !linked())) return;
    const url = `${location.pathname}${location.search}${text ? `#${text}` : ""}`;
    try {
      if (isStep) history.pushState(history.state, "", url);
      else history.replaceState(history.state, "", url);
      address = fragment();
    } catch {
      // A page that may not write its address still works; only the view cannot be shared.
    }
  }
  function remember() {
    clearTimeout(waiting);
    waiting = setTimeout(save, WRITE_AFTER_MS);
  }

  function tell(before) {
    for (const listener of listeners) {
      try {
        listener(state, before);
      } catch (error) {
        reportError(error);
      }
    }
  }

  function change(next) {
    const before = state;
    state = Object.freeze(next);
    tell(before);
  }

  // What is isolated is never filtered away: choosing it lifts the filters, and filters that hide it let it go.
  function set(part) {
    const next = { ...state, ...part };
    if (next.k !== state.k) Object.assign(next, { move: part.move ?? "", loop: part.loop ?? "" });
    if (next.level !== state.level || next.gpu !== state.gpu) next.zoom = part.zoom ?? "";
    if (next.k && hiddenBy(next)[next.k]) Object.assign(next, part.k ? unfiltered() : { k: "" });
    change(next);
    remember();
  }

  // What the text filter looks through: the launch's own words and those of its line in the list.
  let texts = null;
  function textOf(key) {
    texts ||= allTexts();
    return texts.get(key);
  }
  function allTexts() {
    const words = lens.words?.() || new Map();
    return new Map([...items.values()].map((item) => {
      const own = [item.name, item.gpu, item.r, item.bound, item.precision, item.range, item.process];
      return [item.k, `${own.join(" ")} ${words.get(item.k) || ""}`.toLowerCase()];
    }));
  }

  function leftOut(choices) {
    const asked = choices.q.toLowerCase().split(/\s+/).filter(Boolean);
    const exact = Object.entries(EXACT).filter(([key]) => choices[key] !== "");
    const keys = {};
    for (const item of items.values()) {
      const stays = exact.every(([key, own]) => [item[own]].flat().includes(choices[key]))
        && (choices.only === "" || choices.only.split(".").includes(item.g))
        && (choices.verdicts.length === 0 || choices.verdicts.includes(item.bound))
        && (choices.top >= 100 || item.cum < choices.top / 100)
        && asked.every((word) => textOf(item.k).includes(word));
      if (!stays) keys[item.k] = true;
    }
    // The sum of all other kernels is no kernel that a filter could keep.
    if (Object.keys(keys).length) keys[""] = true;
    return keys;
  }
  // The same object as long as the filters are the same: listeners compare it.
  let left = { filters: "", keys: {} };
  function hiddenBy(choices) {
    const filters = JSON.stringify(FILTERS.map((key) => choices[key]));
    if (left.filters !== filters) left = { filters, keys: leftOut(choices) };
    return left.keys;
  }
  const hidden = (part) => (part ? leftOut({ ...state, ...part }) : hiddenBy(state));

  const filtered = () => FILTERS.some((key) => String(state[key]) !== String(DEFAULTS[key]));
  const unfiltered = () => Object.fromEntries(FILTERS.map((key) => [key, DEFAULTS[key]]));
  const clear = () => set(unfiltered());

  // Several kernels: the first to be joined keeps the one that is isolated.
  function join(key) {
    const { g } = items.get(key) || {};
    if (!g) return;
    const own = items.get(state.k)?.g;
    const joined = new Set(state.only ? state.only.split(".") : [own].filter(Boolean));
    if (!joined.delete(g)) joined.add(g);
    set({ only: [...joined].join("."), k: "" });
  }

  // A link to a kernel keeps the other choices; a shared view brings its own.
  function follow() {
    address = fragment();
    if (linked()) set({ k: linked() });
    else if (isState(fragment())) change(read(fragment()));
    written = { text: steps(), key: "", ms: -Infinity };
  }
  state = Object.freeze(linked() ? { ...DEFAULTS, k: linked() } : read(isState(fragment()) ? fragment() : ""));
  written.text = steps();
  addEventListener("hashchange", follow);
  queueMicrotask(() => tell(state));
  // The list is read by now: what was looked for in it may leave other launches.
  document.addEventListener("DOMContentLoaded", () => {
    if (state.q) {
      texts = null;
      left = { filters: "", keys: {} };
    }
    tell(state);
  });

  return {
    get state() {
      return state;
    },
    items,
    data,
    fileName,
    set,
    join,
    save,
    clear,
    filtered,
    hidden,
    linked,
    picked: () => items.get(state.k) || null,
    on: (listener) => void listeners.push(listener),
  };
})();
