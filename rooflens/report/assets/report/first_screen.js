// The first screen follows the filters: shares of time by verdict, the ranking, and what is at a limit.
(() => {
  const SHOWN = 5;
  const WORTH = 0.01;
  // Tiers of the order, as `rooflens.model.ranking` has them.
  const GAIN = 0;
  const FILL = 4;
  const NAMED = 3;
  const NAME_CHARS = 40;
  const { count, cut, duration, factor, percent, unbroken } = lens.format;
  const byId = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];

  const items = [...lens.items.values()];
  const several = new Set(items.map((item) => item.r)).size > 1;
  const total = (rows, key) => {
    const known = rows.map((item) => item[key]).filter((value) => value !== null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
  };
  const launches = (rows) => rows.reduce((sum, item) => sum + item.n, 0);
  function byKernel(rows) {
    const kernels = new Map();
    for (const item of rows) if (item.g !== "") kernels.set(item.g, [...(kernels.get(item.g) || []), item]);
    return [...kernels];
  }
  const pageNs = Number(byId("first").dataset.ns);
  const part = (ns) => (ns !== null && pageNs ? ns / pageNs : null);

  // The words of the page as it came count kernels that are not drawn too: they stand while nothing is filtered.
  const list = document.querySelector("ol.ranking");
  const entries = list ? [...list.children] : [];
  const texts = new Map(all("#first [data-live]").map((element) => [element, element.textContent]));
  const hiding = ["summary-left", "summary-reports", "ranking-none", "ranking-more", "ranking-earlier", "at-limit"]
    .map(byId).filter(Boolean);
  const hides = new Map(hiding.map((element) => [element, element.hidden]));
  const begins = new Map(entries.map((entry) => [entry, entry.classList.contains("begins")]));
  const places = new Map(entries.map((entry) => [entry, { hidden: entry.hidden, k: entry.dataset.k }]));
  const bars = all(".summary .stack");
  const widths = new Map([...bars, ...all(".summary .fill")].map((part) => [part, part.style.width]));
  const byReport = all(".summary .by-report li");
  const titles = new Map(all(".summary .legend li").map((line) => [line, line.title]));
  function write(element, text) {
    if (element && element.textContent !== text) element.textContent = unbroken(text);
  }
  function restore() {
    for (const [element, text] of texts) element.textContent = text;
    for (const [element, hidden] of hides) element.hidden = hidden;
    for (const [entry, { hidden, k }] of places) {
      entry.hidden = hidden;
      entry.classList.toggle("begins", begins.get(entry));
      link(entry, k);
    }
    for (const [part, width] of widths) {
      part.style.width = width;
      part.hidden = false;
    }
    for (const line of byReport) line.hidden = false;
    for (const [line, title] of titles) {
      line.hidden = false;
      line.title = title;
    }
    list?.append(...entries);
  }
  function link(entry, key) {
    entry.dataset.k = key;
    entry.querySelector("a.name").href = `#${key}`;
  }

  function showShares(left) {
    const note = byId("summary-left");
    if (!note) return;
    const leftNs = total(left, "ns") || 0;
    note.hidden = false;
    const sum = byId("summary-reports");
    if (sum) sum.hidden = true;
    write(note, leftNs ? `Of the ${duration(leftNs)} that the filters leave, ${percent(part(leftNs))} of all`
      : "The filters leave no GPU time");
    for (const line of titles.keys()) {
      const mine = left.filter((item) => item.bound === line.dataset.bound);
      const ns = total(mine, "ns") || 0;
      line.hidden = ns === 0;
      if (ns === 0) continue;
      write(line.querySelector("b"), percent(ns / leftNs));
      write(line.querySelector("small"), duration(ns));
      line.title = count(launches(mine), "launch");
    }
    const rowsOf = (line) => (line ? left.filter((item) => item.r === line.dataset.report) : left);
    const times = bars.map((bar) => total(rowsOf(bar.closest("li")), "ns") || 0);
    for (const [i, bar] of bars.entries()) {
      const line = bar.closest("li");
      if (line) {
        line.hidden = times[i] === 0;
        write(line.querySelector("small"), duration(times[i]));
        bar.style.width = `${(100 * times[i]) / Math.max(...times)}%`;
      }
      for (const fill of bar.children) {
        const ns = total(rowsOf(line).filter((item) => item.bound === fill.dataset.bound), "ns") || 0;
        fill.hidden = ns === 0;
        fill.style.width = `${(100 * ns) / times[i]}%`;
      }
    }
  }

  // A kernel counts with what is left of it; where that has one verdict of several, the entry about that one speaks.
  const stakeOf = (item) => (item.won === null ? item.ns || 0 : item.won);
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
      .sort((a, b) => a.tier - b.tier || b.stake - a.stake || (b.ns || 0) - (a.ns || 0));
    const mostOf = (rows) => Math.max(0, ...rows.map((kernel) => kernel.stake));
    const won = mostOf(kernels.filter(({ tier }) => tier === GAIN));
    const most = mostOf(kernels.filter(({ tier }) => tier !== FILL));
    const isWorth = ({ tier, stake }) => stake >= WORTH * (tier === GAIN ? won : most);
    const first = kernels.filter(entryOf).filter(isWorth).slice(0, SHOWN);
    return { kernels, first, earlier: every.length - kernels.length };
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
    const { kernels, first, earlier } = ranked(left);
    byId("ranking-earlier").hidden = earlier === 0;
    write(byId("ranking-earlier").querySelector("[data-live]"), count(earlier, "older version"));
    for (const entry of entries) entry.hidden = true;
    for (const [place, kernel] of first.entries()) {
      const entry = entryOf(kernel);
      entry.hidden = false;
      entry.classList.toggle("begins", place > 0 && first[place - 1].tier === GAIN && kernel.tier !== GAIN);
      list.append(entry);
      link(entry, kernel.rows.some((item) => item.k === places.get(entry).k) ? places.get(entry).k : kernel.worst.k);
      fill(entry, place + 1, kernel);
    }
    byId("ranking-none").hidden = kernels.length > 0;
    const rest = kernels.filter((kernel) => !first.includes(kernel));
    const others = new Set(rest.flatMap((kernel) => kernel.rows).map((item) => item.g)).size;
    const more = byId("ranking-more");
    more.hidden = rest.length === 0;
    const ofVersions = entries.some((entry) => entry.dataset.whole);
    const share = ofVersions ? null : part(total(rest.flatMap((kernel) => kernel.rows), "ns"));
    write(more.querySelector("[data-live]"),
      `${count(others, "more kernel")}${share === null ? "" : `, ${percent(share)} of GPU time`}`);
  }
  function fill(entry, place, { rows, ns }) {
    const amount = launches(rows);
    const { whole, of } = entry.dataset;
    const share = whole && ns !== null ? ns / Number(whole) : part(ns);
    const { gain, how } = entry.dataset;
    const time = ns === null ? lens.format.MISSING : duration(ns);
    const took = [amount > 1 ? `x${amount.toLocaleString("en")}` : "",
      share === null ? "" : `${percent(share)} of ${whole ? of : "GPU time"}`];
    write(entry.querySelector(".rank"), String(place));
    write(entry.querySelector(".took"), took.filter(Boolean).join(", "));
    const after = gain && ns !== null ? ` \u2192 ${how} ${duration(ns / gain)} (${factor(Number(gain))})` : "";
    write(entry.querySelector(".gain"), `${time}${after}`);
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
    write(line, `${percent(share)} of GPU time: a unit is saturated: ${words}.`);
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
  const opening = moves.find((one) => one.checked);
  lens.on(({ move }) => {
    const one = moves.find((each) => each.value === move) || opening;
    if (!one) return;
    one.checked = true;
    write(byId("gain"), one.dataset.figure);
  });
  let drawn = null;
  lens.on(() => {
    const hidden = lens.hidden();
    if (drawn !== hidden) {
      const left = leftNow(hidden);
      if (left.length === items.length) restore();
      else for (const show of [showShares, showRanking, showLimit]) show(left);
    }
    drawn = hidden;
    const item = lens.picked();
    for (const entry of entries) entry.classList.toggle("current", item !== null && item.g !== "" && entry.dataset.g === item.g);
  });
})();
