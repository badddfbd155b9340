// What a forecast says: its sentence, its times as bars, its numbers, its parts and where its roofs come from.
lens.results = (all) => {
  const { MISSING, si, duration, percent, factor, significant, intensity, count, unbroken } = lens.format;
  const NS_PER_S = 1e9;
  const REGIMES = ["compute", "memory", "communication", "overhead"];

  const make = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const capital = (text) => text[0].toUpperCase() + text.slice(1);
  const label = (key) => all.labels[key] || key;
  const time = (seconds) => duration(seconds * NS_PER_S);
  const flops = (value) => si(value, "FLOP");
  const flopRate = (value) => si(value, "FLOP/s");
  const bytes = (value) => si(value, "B");
  const byteRate = (value) => si(value, "B/s");
  const sum = (parts) => parts.reduce((total, part) => total + part.t_lower_s, 0);

  // ---- In a sentence, word for word as `rooflens/report/forecast/sentences.py` writes it.

  function sentence(result) {
    const tokens = result.tokens_per_s ? `, at best ${significant(result.tokens_per_s)} tokens/s` : "";
    const reached = result.measured_s === null ? "" : ` ${measuredWords(result)}.`;
    const floor = `Floor ${time(result.t_lower_s)}${publishedWords(result)}${tokens}.${reached}`;
    const bound = `${capital(result.regime)}-bound`;
    if (result.regime === "overhead") {
      const launches = count(result.parts.reduce((total, part) => total + part.count, 0) || 1, "launch");
      return `${bound}: as long as ${launches}, each 2 to 5 \u00b5s of host time. ${floor}`;
    }
    if (result.parts.length) {
      const share = sum(result.parts.filter((part) => part.regime === result.regime)) / (result.t_lower_s || 1);
      return `${bound} for ${percent(share)} of its floor. ${floor}`;
    }
    if (!result.flop) {
      const sent = result.sent_bytes ? ` and ${bytes(result.sent_bytes)} to send` : "";
      return `${bound}: no FLOPs, ${bytes(result.bytes)} to move${sent}. ${floor}`;
    }
    if (result.regime === "communication") {
      const over = factor(result.t_comms_s / Math.max(result.t_math_s, result.t_memory_s));
      return `${bound}: ${bytes(result.sent_bytes)} to send take ${over} as long as the rest. ${floor}`;
    }
    const why = BESIDE.includes(result.longest) ? beside(result) : againstRidge(result);
    return `${bound}: ${why}. ${floor}`;
  }

  const overFloor = (seconds, result) => significant(seconds / result.t_lower_s, 2);
  function publishedWords(result) {
    if (result.attainable_low_s === null) return "";
    const [low, typical, high] = ["low", "typical", "high"].map((name) => overFloor(result[`attainable_${name}_s`], result));
    const unproven = result.attainable_proven ? "" : "; unproven: one source";
    return `; published kernels reach ${low} to ${high} times that (median ${typical}${unproven})`;
  }

  function measuredWords(result) {
    const { measured_s: taken, attainable_low_s: low, attainable_typical_s: typical, attainable_high_s: high } = result;
    const words = `${time(taken)} is ${significant(taken / result.t_lower_s)} times the floor`;
    if (taken < result.t_lower_s) return `${words}: it did less work than predicted, or the time is wrong`;
    if (low === null) return words;
    const against = `${words} and ${significant(taken / typical)} times the median of published kernels`;
    if (taken > high) return `${against}: slower than all of them`;
    if (taken > typical) return `${against}: slower than half of them; the best would take ${time(low)}`;
    return `${against}: faster than half of them, stop here`;
  }

  const BESIDE = ["t_special_s", "t_issue_s", "t_l2_s"];
  const amount = (value) => si(value, "").trim();
  function beside(result) {
    if (result.longest === "t_l2_s") {
      const over = factor(result.t_l2_s / result.t_memory_s);
      return `${bytes(result.l2_bytes)} through L2 take ${over} as long as ${bytes(result.bytes)} through DRAM`;
    }
    const [many, what] = result.longest === "t_special_s"
      ? [result.special, "special functions"] : [result.issued, "instructions that unpack weights"];
    return `${amount(many)} ${what} take ${factor(result[result.longest] / result.t_math_s)} as long as its FLOPs`;
  }

  function againstRidge(result) {
    if (!result.bytes) return "no bytes to move";
    const over = result.intensity / result.ridge;
    const apart = over >= 1 ? `${factor(over)} the ridge` : `${factor(1 / over)} below the ridge`;
    return `${intensity(result.intensity)}, ${apart} of ${significant(result.ridge)}`;
  }

  function answer(result) {
    return [make("span", { className: `sign ${result.regime}` }), unbroken(sentence(result))];
  }

  function publishers(result) {
    const { published, attainable_points: points } = result;
    if (!points) return [];
    const summary = `Published kernels: ${points} times from ${published.length === 1 ? "one source" : `${published.length} sources`}`;
    return [make("summary", {}, summary), make("p", {}, `${published.join("; ")}.`)];
  }

  function inCache({ gpu, bytes: moved }) {
    if (!gpu.l2_bytes) return "";
    return moved <= gpu.l2_bytes
      ? `These bytes fit into the L2 cache of ${bytes(gpu.l2_bytes)}: those already there cost no DRAM traffic.`
      : `These bytes do not fit into the L2 cache of ${bytes(gpu.l2_bytes)}.`;
  }

  function sources({ gpu, flop, parts, peak, link }) {
    const pipes = new Set([...(flop ? [peak] : []), ...parts.filter((part) => part.flop).map((part) => part.peak)]);
    const roofs = [...pipes].map((key) => [label(key), gpu.peaks[key], "FLOP/s"]);
    roofs.push([gpu.memory, gpu.bandwidth, "B/s"]);
    if (gpu.l2) roofs.push(["L2", gpu.l2, "B/s"]);
    if (link) roofs.push([link.name, link.rate, "B/s in one direction"]);
    const words = roofs.map(([name, [value, source], unit]) => `${name} ${si(value, unit)} (${all.sources[source]})`);
    return unbroken(`${gpu.short}: ${words.join("; ")}.`);
  }

  // ---- In the plane.

  const placed = (result) => result.roof_flop_per_s > 0 && result.intensity > 0;
  const drawable = (result) => placed(result) || result.parts.some(placed);
  const at = (part) => ({ x: part.intensity, y: part.roof_flop_per_s, regime: part.regime });

  function machine(result, i, several) {
    const who = several ? `${result.gpu.short}: ` : "";
    const counted = result.parts.filter((part) => part.flop);
    const used = counted.length ? counted : [result];
    const pipes = new Map(used.map((part) => [part.peak_flop_per_s, part.peak]));
    const rate = placed(result) ? flopRate(result.roof_flop_per_s) : "";
    const parts = i === 0 ? result.parts.filter(placed) : [];
    return {
      who,
      kind: i === 0 ? "first" : "second",
      parts: parts.map((part) => ({ ...at(part), share: part.t_lower_s / result.t_lower_s, words: part.label })),
      bandwidth: result.bandwidth_bytes_per_s,
      memory: result.gpu.memory,
      // Two GPUs are told apart by one slope each.
      l2: several ? null : result.gpu.l2 && result.gpu.l2[0],
      link: slopeOf(result),
      pipes: [...pipes].sort(([a], [b]) => b - a).map(([peak, key]) => ({ label: label(key), peak })),
      dot: rate && { ...at(result), names: [`${who}${intensity(result.intensity)}, ${rate}`, `${who}${rate}`, rate] },
    };
  }

  // Bytes sent go with bytes moved: over those, a link is a slope like any other.
  function slopeOf({ link, sent_bytes: sent, bytes: moved, parts }) {
    if (!link || !sent || parts.length) return null;
    return { rate: (link.rate[0] * moved) / sent, label: `${link.name} ${byteRate(link.rate[0])}` };
  }

  function measured(result) {
    if (result.measured_s === null || !placed(result)) return [];
    const words = `measured: ${percent(result.t_lower_s / result.measured_s)} of its roof`;
    return [{ x: result.intensity, y: result.flop / result.measured_s, top: result.roof_flop_per_s, words }];
  }

  function scene(results, subtitle) {
    return {
      title: results.map((result) => result.gpu.short).join(" and "),
      subtitle,
      machines: results.map((result, i) => machine(result, i, results.length > 1)),
      extra: measured(results[0]),
    };
  }

  // ---- In tables: each number with its text for readers and its value for scripts.

  function cell(result, key, text, of, name = "td") {
    const value = result[key] ?? null;
    const made = make(name, { className: name === "td" ? "n" : "" }, unbroken(value === null ? MISSING : text(value)));
    Object.assign(made.dataset, { key, value: value ?? "", of });
    return made;
  }
  const ofWhich = (i) => (i === 0 ? "first" : "second");

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

  // Which regimes the floor is spent in.
  function spent(result) {
    if (!result.parts.length) return [[result.regime, result.t_lower_s]];
    return REGIMES.map((regime) => [regime, sum(result.parts.filter((part) => part.regime === regime))]);
  }

  // Published kernels: from the best to the median, and on to the slowest.
  function attained(result) {
    const { attainable_low_s: low, attainable_typical_s: typical, attainable_high_s: high } = result;
    if (low === null) return [];
    const pieces = [["published", low], ["typical", typical - low], ["slowest", high - typical]];
    const how = `${time(low)} to ${time(high)}, median of ${result.attainable_points} published times over their floors`;
    return [["Attainable", "attainable_typical_s", pieces, result.attainable_proven ? how : `${how}; unproven: one source`]];
  }

  function measuredRatio(result) {
    const { time_over_floor: floor, time_over_attainable: median } = result;
    const over = floor === null ? "" : `${significant(floor)} times the floor`;
    return median === null ? over : `${over}, ${significant(median)} times the median of published kernels`;
  }

  function timeRows(result, of, whole) {
    const { link } = result;
    const composite = result.parts.length > 0;
    const sent = link && `${bytes(result.sent_bytes)} sent / ${byteRate(link.rate[0])} of ${link.name} in one direction`;
    const single = [["compute", result.t_math_s], ["memory", result.t_memory_s], ["communication", result.t_comms_s]];
    const rate = (value, unit) => (value === null ? "each part at its own rate" : si(value, unit));
    const besides = [
      ["T MUFU", "t_special_s", "compute", `${amount(result.special)} special functions / ${rate(result.special_per_s, "/s")}`],
      ["T issue", "t_issue_s", "compute", `${amount(result.issued)} instructions / ${rate(result.issued_per_s, "/s")}`],
      ["T L2", "t_l2_s", "memory", `${bytes(result.l2_bytes)} through L2 / ${rate(result.l2_bytes_per_s, "B/s")}`],
    ].filter(([, key]) => result[key] && (key !== "t_l2_s" || result.l2_bytes > result.bytes));
    const rows = [
      ["T math", "t_math_s", [single[0]],
        composite ? "each part on its own pipe" : `${flops(result.flop)} / ${flopRate(result.peak_flop_per_s)}`],
      ["T memory", "t_memory_s", [single[1]], `${bytes(result.bytes)} / ${byteRate(result.bandwidth_bytes_per_s)}`],
      ...besides.map(([name, key, kind, how]) => [name, key, [[kind, result[key]]], how]),
      ...(link ? [["T comms", "t_comms_s", [single[2]], sent]] : []),
      ["Floor", "t_lower_s", spent(result), `the longest of them${composite ? " for each part, added up" : ""}`],
      ...attained(result),
      ...(result.measured_s === null ? [] : [["Measured", "measured_s", [["measured", result.measured_s]], measuredRatio(result)]]),
    ];
    return rows.map(([name, key, pieces, how]) => make("tr", {},
      make("th", { scope: "row" }, name),
      make("td", { className: "bars" }, bar(pieces, whole), make("small", {}, unbroken(how))),
      cell(result, key, time, of)));
  }

  function times(results) {
    const whole = Math.max(...results.flatMap((result) => [result.t_lower_s, result.attainable_high_s ?? 0, result.measured_s ?? 0]));
    const who = (result) => make("tr", {}, make("th", { colSpan: 3, className: "who", scope: "rowgroup" }, result.gpu.short));
    const bodies = results.map((result, i) => make("tbody", {},
      ...(results.length > 1 ? [who(result)] : []), ...timeRows(result, ofWhich(i), whole)));
    const names = ["Time", "On one scale", "How long"].map((name) => make("th", { scope: "col" }, name));
    const head = make("thead", { className: "visually-hidden" }, make("tr", {}, ...names));
    return make("table", { className: "times" }, head, ...bodies);
  }

  const NUMBERS = [
    ["FLOPs", "flop", flops],
    ["Bytes, compulsory", "bytes", bytes],
    ["Intensity", "intensity", intensity],
    ["Ridge", "ridge", intensity],
    ["Regime", "regime", (value) => value],
    ["Peak, dense", "peak_flop_per_s", flopRate],
    ["Memory bandwidth", "bandwidth_bytes_per_s", byteRate],
    ["Sent by each GPU", "sent_bytes", bytes],
    ["Link, one direction", "link_bytes_per_s", byteRate],
    ["FLOPs per byte sent", "link_intensity", intensity],
    ["Ridge of the link", "link_ridge", intensity],
    ["At the floor", "roof_flop_per_s", flopRate],
    ["Of the peak", "share_of_peak", percent],
    ["Tokens per second, at best", "tokens_per_s", (value) => significant(value)],
    ["Time over floor", "time_over_floor", factor],
    ["Time over published median", "time_over_attainable", factor],
  ];
  const OF_FLOPS = ["intensity", "ridge", "peak_flop_per_s", "share_of_peak", "link_intensity", "link_ridge"];

  // One GPU: a grid of numbers; two: a table that sets them side by side.
  function numbers(results) {
    const [first] = results;
    const silent = [...(first.flop ? [] : OF_FLOPS), ...(first.link ? [] : ["sent_bytes"])];
    const known = (key) => results.some((result) => (result[key] ?? null) !== null);
    const shown = NUMBERS.filter(([, key]) => !silent.includes(key) && known(key));
    if (results.length === 1) {
      return make("dl", { className: "tiles" }, ...shown.map(([name, key, text]) => (
        make("div", {}, make("dt", {}, name), cell(first, key, text, "first", "dd")))));
    }
    const rows = shown.map(([name, key, text]) => make("tr", {},
      make("th", { scope: "row" }, name), ...results.map((result, i) => cell(result, key, text, ofWhich(i)))));
    const heads = results.map((result) => make("th", { className: "n", scope: "col" }, result.gpu.short));
    const head = make("thead", {}, make("tr", {}, make("td"), ...heads));
    return make("table", { className: "numbers" }, head, make("tbody", {}, ...rows));
  }

  function parts(result) {
    const heads = [["Part", ""], ["Share of the floor", "bars"], ["Share", "n"], ["Floor", "n"], ["FLOP/B", "n"], ["Regime", ""]];
    const longest = [...result.parts].sort((a, b) => b.t_lower_s - a.t_lower_s);
    const rows = longest.map((part) => make("tr", {},
      make("th", { scope: "row" }, part.count > 1 ? `${part.count.toLocaleString("en")} x ${part.label}` : part.label),
      make("td", { className: "bars" }, bar([[part.regime, part.t_lower_s]], longest[0].t_lower_s)),
      make("td", { className: "n" }, unbroken(percent(result.t_lower_s ? part.t_lower_s / result.t_lower_s : 0))),
      cell(part, "t_lower_s", time, part.label),
      cell(part, "intensity", (value) => significant(value), part.label),
      make("td", {}, part.regime)));
    const head = make("tr", {}, ...heads.map(([name, className]) => make("th", { className, scope: "col" }, name)));
    return make("table", { className: "live-parts" }, make("thead", {}, head), make("tbody", {}, ...rows));
  }

  return { make, sentence, answer, publishers, inCache, sources, drawable, scene, times, numbers, parts };
};
