// Numbers as text, digit for digit as `rooflens/format.py` writes them; units stay beside their numbers.
lens.format = (() => {
  const MISSING = "\u2013";
  const FAR = 10;
  const NEGLIGIBLE = 0.05;
  const PREFIXES = [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]];
  const BEFORE_UNIT = /(?<=\d) (?=%|[kMGTPEmn\u00b5]?(?:s|B|FLOP|op|Hz)\b)/g;
  const BIG_FACTOR = 1000;
  const NOISE_INTENSITY = 1e5;

  // What lies exactly between two numbers is rounded to the even one; the browser would round it up.
  const isTie = (digits) => /^50*$/.test(digits);
  function rounded(value, digits = 3) {
    const [mantissa, exponent] = value.toExponential(60).split("e");
    const kept = mantissa.slice(0, mantissa.indexOf(".") + digits);
    const even = isTie(mantissa.slice(mantissa.indexOf(".") + digits)) && Number(kept.at(-1)) % 2 === 0;
    return Number(even ? `${kept}e${exponent}` : value.toExponential(digits - 1));
  }
  function fixed(value, decimals) {
    const [whole, digits] = value.toFixed(60).split(".");
    const kept = decimals ? `${whole}.${digits.slice(0, decimals)}` : whole;
    return isTie(digits.slice(decimals)) && Number(kept.at(-1)) % 2 === 0 ? kept : value.toFixed(decimals);
  }

  // Making one costs more than a hundred numbers that it writes.
  const writers = new Map();
  function writer(decimals) {
    if (!writers.has(decimals)) {
      const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
      writers.set(decimals, new Intl.NumberFormat("en", digits));
    }
    return writers.get(decimals);
  }

  function significant(value, digits = 3) {
    if (value === null || value === undefined) return MISSING;
    if (value === 0) return "0";
    const near = rounded(value, digits);
    const decimals = Math.max(0, digits - 1 - Number(near.toExponential().split("e")[1]));
    return writer(decimals).format(near);
  }
  function scaled(value, steps) {
    const near = rounded(value);
    const [factor, unit] = steps.find(([step]) => near >= step) || steps.at(-1);
    return [significant(near ? near / factor : value), unit];
  }
  const si = (value, unit) => {
    const [text, prefix] = scaled(value, PREFIXES);
    return `${text} ${prefix}${unit}`;
  };
  const duration = (ns) => scaled(ns, TIMES).join(" ");
  // Time of launches and what a move leaves of it, `6.19 \u2192 about 4.73 ms in 12 launches`; else what is above the floor.
  function figure(ns, launches, { gain, how, above }) {
    const span = launches > 1 ? ` in ${count(launches, "launch")}` : "";
    if (ns === null || !gain) return ns === null ? "no time" : `${duration(ns)}${span}${aboveWords(above, ns)}`;
    const [before, unit] = scaled(ns, TIMES);
    const after = duration(ns / gain);
    return `${before}${after.endsWith(` ${unit}`) ? "" : ` ${unit}`} \u2192 ${how} ${after}${span}`;
  }
  function aboveWords(above, ns) {
    if (above === null || !ns) return "";
    if (above / ns < NEGLIGIBLE) return ", at the floor of today's work";
    const most = 1 - 1 / FAR;
    return `, ${above / ns > most ? `over ${percent(most)} of it` : duration(above)} above its floor`;
  }
  function percent(share) {
    const value = share * 100;
    if (value > 0 && value < 0.05) return "<0.1 %";
    if (value >= 99.5 && value < 100 - 1e-9) return ">99 %";
    return `${fixed(value, value >= 9.95 || value === 0 ? 0 : 1)} %`;
  }
  const digitsOf = (value) => ((value > 1 && value < 1.05) || value >= 100 ? 3 : 2);
  const factor = (value) => (value > BIG_FACTOR ? `>${BIG_FACTOR}x` : `${significant(value, digitsOf(value))}x`);
  function intensity(flopPerByte) {
    const near = rounded(flopPerByte);
    return near >= NOISE_INTENSITY ? si(near, "FLOP/B") : `${significant(near)} FLOP/B`;
  }
  function count(amount, noun) {
    const plural = /(?:ch|s)$/.test(noun) ? "es" : "s";
    return `${amount.toLocaleString("en")} ${noun}${amount === 1 ? "" : plural}`;
  }
  // Shortens a name by cutting its middle, and neither a character nor a number in two.
  function cut(text, width) {
    const characters = [...text];
    if (characters.length <= width) return text;
    const ofNumber = (place) => "0123456789.,".includes(characters[place]);
    const start = characters.length - (width - 1 - Math.floor(width / 2));
    let tail = start;
    if (/\d/.test(characters[start])) {
      while (tail > 0 && ofNumber(tail - 1)) tail -= 1;
      tail = Math.max(tail - 1, 0);
    }
    if (characters.length - tail > Math.floor((2 * width) / 3)) {
      tail = start;
      while (tail < characters.length && ofNumber(tail)) tail += 1;
    }
    let head = width - 1 - (characters.length - tail);
    while (head > 0 && ofNumber(head - 1)) head -= 1;
    return `${characters.slice(0, head).join("")}\u2026${characters.slice(tail).join("")}`;
  }
  const unbroken = (text) => text.replace(BEFORE_UNIT, "\u00a0");

  return { MISSING, significant, si, duration, figure, percent, factor, intensity, count, cut, unbroken };
})();
