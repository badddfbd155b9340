// The first screen follows the filters: the list of what to fix first, and what is at a limit.
(() => {
  const RANKED = 5;
  const LISTED = 12;
  const WORTH = 0.01;
  // Tiers of the order, as `rooflens.model.ranking` has them.
  const GAIN = 0;
  const LIMIT = 1;
  const TIME = 2;
  const FILL = 4;
  const NAMED = 3;
  const NAME_CHARS = 40;
  const { count, cut, figure, percent, unbroken } = lens.format;
  const byId = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];

  const items = [...lens.items.values()];
  const several = new Set(items.map((item) => item.r)).size > 1;
  const total = (rows, key) => {
    const known = rows.map((item) => item[key]).filter((value) => value !== null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
  };
  // How many launches a time is the sum of; 1 where each kernel of a row ran once, as its name says so.
  function launches(rows) {
    const amount = rows.reduce((sum, item) => sum + item.n, 0);
    return amount > new Set(rows.map((item) => item.g)).size ? amount : 1;
  }
  function byKernel(rows) {
    const kernels = new Map();
    for (const item of rows) if (item.g !== "") kernels.set(item.g, [...(kernels.get(item.g) || []), item]);
    return [...kernels];
  }
  const pageNs = Number(byId("first").dataset.ns);
  const part = (ns) => (ns !== null && pageNs ? ns / pageNs : null);

  // The words of the page as it came count kernels that are not drawn too: they stand while nothing is filtered.
  const list = document.querySelector("ol.ranking:has(> li[data-g])");
  const entries = list ? [...list.children] : [];
  const texts = new Map(all("#first [data-live]").map((element) => [element, element.textContent]));
  const hiding = ["ranking-none", "ranking-more", "ranking-earlier", "at-limit"].map(byId).filter(Boolean);
  const hides = new Map(hiding.map((element) => [element, element.hidden]));
  const barOf = (entry) => entry.querySelector(".meter > span");
  const piecesOf = (entry) => [...entry.querySelectorAll(".meter i")];
  const places = new Map(entries.map((entry) => [entry, {
    hidden: entry.hidden, k: entry.dataset.k, looks: entry.className, width: barOf(entry).style.width,
    pieces: piecesOf(entry).map((piece) => piece.style.flexGrow),
  }]));
  function write(element, text) {
    if (element && element.textContent !== text) element.textContent = unbroken(text);
  }
  function restore() {
    for (const [element, text] of texts) element.textContent = text;
    if (list) title?.replaceChildren(...opening);
    for (const [element, hidden] of hides) element.hidden = hidden;
    for (const [entry, { hidden, k, looks, width, pieces }] of places) {
      entry.hidden = hidden;
      entry.className = looks;
      barOf(entry).style.width = width;
      for (const [i, piece] of piecesOf(entry).entries()) piece.style.flexGrow = pieces[i];
      link(entry, k);
    }
    list?.append(...entries);
  }
  function link(entry, key) {
    entry.dataset.k = key;
    entry.querySelector("a.name").href = `#${key}`;
  }

  // A kernel counts with what is left of it; where that has one verdict of several, the entry about that one speaks.
  const stakeOf = (item) => (item.won === null || item.tier > LIMIT ? item.ns || 0 : item.won);
  // Kernels that one move is for stand in one row.
  function byRow(rows) {
    const found = new Map();
    for (const item of rows) if (item.g !== "") found.set(item.o || item.g, [...(found.get(item.o || item.g) || []), item]);
    return [...found];
  }
  const classes = (rows) => new Set(rows.map((item) => item.bound)).size;
  const bounds = new Map(byRow(items).map(([key, rows]) => [key, classes(rows)]));
  function standing([key, rows]) {
    const worst = rows.reduce((most, item) => (stakeOf(item) > stakeOf(most) ? item : most));
    const whole = classes(rows) === bounds.get(key) || new Set(rows.map((item) => item.g)).size > 1;
    const stake = rows.reduce((sum, item) => sum + stakeOf(item), 0);
    return { key, rows, worst, stake, tier: worst.tier, part: whole ? "" : worst.bound, ns: total(rows, "ns") };
  }
  const entryOf = ({ key, part: named }) => entries.find((one) => one.dataset.g === key && one.dataset.part === named);

  const leftNow = (hidden) => items.filter((item) => !hidden[item.k]);
  function ranked(left) {
    const every = byRow(left).map(standing);
    const newest = new Map();
    for (const { f, v } of left) if (f) newest.set(f, Math.max(v, newest.get(f) ?? v));
    const kernels = every.filter(({ worst: { f, v } }) => !f || v === newest.get(f))
      .sort((a, b) => Math.max(a.tier, TIME) - Math.max(b.tier, TIME) || b.stake - a.stake || (b.ns || 0) - (a.ns || 0));
    const mostOf = (rows) => Math.max(0, ...rows.map((kernel) => kernel.stake));
    const won = mostOf(kernels.filter(({ tier }) => tier === GAIN));
    const most = mostOf(kernels.filter(({ tier }) => tier !== FILL));
    const isWorth = ({ tier, stake }) => stake >= WORTH * (tier === GAIN ? won : most);
    const held = kernels.filter(entryOf);
    const first = held.filter(isWorth).slice(0, RANKED);
    const listed = [...first, ...held.filter((kernel) => !first.includes(kernel))].slice(0, LISTED);
    return { kernels, first, listed, earlier: every.length - kernels.length };
  }
  // The charts number their points like the list; the same object as long as the filters leave the same.
  let numbered = { hidden: null, ranks: null };
  lens.ranks = () => {
    const hidden = lens.hidden();
    if (numbered.hidden === hidden) return numbered.ranks;
    const left = leftNow(hidden);
    const numbers = (kernel, i) => kernel.rows.map((item) => [item.k, String(i + 1)]);
    const ranks = left.length === items.length ? null : Object.fromEntries(ranked(left).first.flatMap(numbers));
    numbered = { hidden, ranks };
    return ranks;
  };
  function showRanking(left) {
    if (!list) return;
    const { kernels, first, listed, earlier } = ranked(left);
    const longest = Math.max(...listed.map((kernel) => kernel.ns || 0));
    byId("ranking-earlier").hidden = earlier === 0;
    write(byId("ranking-earlier").querySelector("[data-live]"), count(earlier, "older version"));
    for (const entry of entries) entry.hidden = true;
    let hasAsked = "asked" in list.dataset;
    const withoutGain = listed.findLastIndex(({ tier }) => tier === GAIN) + 1;
    for (const [place, kernel] of listed.entries()) {
      const entry = entryOf(kernel);
      entry.hidden = false;
      entry.classList.toggle("begins", place > 0 && place === withoutGain);
      entry.classList.toggle("brief", !first.includes(kernel));
      // What more to collect is said once.
      const asks = "asks" in entry.dataset;
      entry.classList.toggle("again", asks && hasAsked);
      hasAsked ||= asks;
      link(entry, kernel.rows.some((item) => item.k === places.get(entry).k) ? places.get(entry).k : kernel.worst.k);
      fill(entry, place + 1, kernel, longest);
    }
    list.prepend(...listed.map(entryOf));
    byId("ranking-none").hidden = kernels.length > 0;
    const rest = kernels.filter((kernel) => !listed.includes(kernel));
    const others = new Set(rest.flatMap((kernel) => kernel.rows).map((item) => item.g)).size;
    const more = byId("ranking-more");
    more.hidden = rest.length === 0;
    const ofVersions = entries.some((entry) => entry.dataset.whole);
    const share = ofVersions ? null : part(total(rest.flatMap((kernel) => kernel.rows), "ns"));
    write(more.querySelector("[data-live]"),
      `${count(others, "more kernel")}${share === null ? "" : `, ${percent(share)} of GPU time`}`);
  }
  // What a kernel is ranked by where no gain is known.
  const aboveOf = ({ rows, tier }) => (tier === FILL ? null : total(rows, "won"));
  function fill(entry, place, kernel, longest) {
    const { rows, ns } = kernel;
    const amount = launches(rows);
    const { whole, of } = entry.dataset;
    const share = whole && ns !== null ? ns / Number(whole) : part(ns);
    const { gain, how } = entry.dataset;
    write(entry.querySelector(".rank"), String(place));
    write(entry.querySelector(".took"), share === null ? "" : `${percent(share)} of ${whole ? of : "GPU time"}`);
    write(entry.querySelector(".gain"), figure(ns, amount, { gain, how, above: aboveOf(kernel) }));
    barOf(entry).style.width = `${longest ? (100 * (ns || 0)) / longest : 0}%`;
    for (const piece of piecesOf(entry)) {
      piece.style.flexGrow = total(rows.filter((item) => item.bound === piece.dataset.bound), "ns") || 0;
    }
  }

  // The headline is that of the first kernel that the filters leave, with the times of what they leave of it.
  const title = document.querySelector("h1");
  const opening = title ? [...title.childNodes] : [];
  function showHeadline(left) {
    if (!list || !title) return;
    const kernel = ranked(left).listed[0];
    if (!kernel) {
      title.replaceChildren("No kernel passes these filters");
      return;
    }
    const entry = entryOf(kernel);
    const { lead, name, joint, said } = entry.dataset;
    const isWhole = kernel.rows.length === items.filter((item) => (item.o || item.g) === kernel.key).length;
    const link = document.createElement("a");
    link.className = "name";
    link.href = `#${entry.dataset.k}`;
    link.textContent = name;
    if (isWhole) title.replaceChildren(lead, link, joint, unbroken(said));
    else {
      const { gain, how } = entry.dataset;
      const words = figure(kernel.ns, launches(kernel.rows), { gain, how, above: null });
      title.replaceChildren(link, ": ", unbroken(words));
    }
  }

  function showLimit(left) {
    const line = byId("at-limit");
    if (!line) return;
    const limited = byKernel(left.filter((item) => item.full)).map(standing).sort((a, b) => (b.ns || 0) - (a.ns || 0));
    const share = part(total(limited.flatMap((kernel) => kernel.rows), "ns"));
    line.hidden = share === null || share < WORTH;
    if (line.hidden) return;
    const named = limited.slice(0, NAMED).map(({ rows }) => {
      const name = cut(rows[0].name, NAME_CHARS);
      return `${several ? `${name}, ${rows[0].r}` : name} (${rows[0].full})`;
    });
    const others = limited.length - named.length;
    const words = `${named.join(", ")}${others ? ` and ${others.toLocaleString("en")} more` : ""}`;
    write(line.querySelector("[data-live]"), `${percent(share)} of GPU time: a unit is saturated: ${words}.`);
  }

  for (const entry of entries) {
    entry.addEventListener("click", (event) => {
      const { k } = entry.dataset;
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        lens.join(k);
        return;
      }
      if (!event.target.closest("a") && getSelection().isCollapsed) lens.set({ k: k === lens.state.k ? "" : k });
    });
  }
  // The chosen move of a page of one kernel: its time stands large, its ghost in the chart.
  const moves = all("input[name=move]");
  for (const one of moves) one.addEventListener("change", () => lens.set({ move: one.value }));
  const first = moves.find((one) => one.checked);
  lens.on(({ move }) => {
    const one = moves.find((each) => each.value === move) || first;
    if (!one) return;
    one.checked = true;
    write(byId("gain"), one.dataset.said);
    write(byId("sure"), one.dataset.sure);
  });
  let drawn = null;
  lens.on(() => {
    const hidden = lens.hidden();
    if (drawn !== hidden) {
      const left = leftNow(hidden);
      if (left.length === items.length) restore();
      else for (const show of [showRanking, showLimit, showHeadline]) show(left);
    }
    drawn = hidden;
    const item = lens.picked();
    const isOne = item !== null && item.g !== "";
    for (const entry of entries) {
      const isMine = isOne && entry.dataset.g === (item.o || item.g);
      entry.classList.toggle("current", isMine);
      entry.classList.toggle("faint", isOne && !isMine);
    }
  });
})();
