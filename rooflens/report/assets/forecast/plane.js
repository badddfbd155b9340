// The live roofline: roofs of one or two GPUs, the dot of the forecast, and the parts it is made of.
lens.plane = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const HALF_DECADE = Math.sqrt(10);
  const MARGIN = { left: 84, right: 12, top: 56, bottom: 44 };
  const GAP_PX = 6;
  const LINE_PX = 15;
  const EDGE_PX = 24;
  const NARROW_PX = 480;
  const SAVE_PX = 112;
  const MINOR_FROM_PX = 72;
  const BIG_X = 1e5;
  const { si, significant, unbroken } = lens.format;

  function element(name, attributes, text) {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    return made;
  }

  // Whole decades around what must be seen, so that the axes stand still while the dot moves.
  const floor10 = (value) => 10 ** Math.floor(Math.log10(value) + 1e-9);
  const ceil10 = (value) => 10 ** Math.ceil(Math.log10(value) - 1e-9);

  function domains(machines, extra) {
    const ridges = machines.flatMap((machine) => machine.pipes.map((pipe) => pipe.peak / machine.bandwidth));
    const peaks = machines.flatMap((machine) => machine.pipes.map((pipe) => pipe.peak));
    const dots = [...machines.flatMap((machine) => [...(machine.dot ? [machine.dot] : []), ...machine.parts]), ...extra];
    const xs = [Math.min(...ridges) / 100, Math.max(...ridges) * 10, ...dots.map((dot) => dot.x)];
    const x = [floor10(Math.min(...xs) / 1.2), ceil10(Math.max(...xs) * 2)];
    const slowest = Math.min(...machines.map((machine) => machine.bandwidth));
    const ys = [slowest * x[0], ...dots.map((dot) => dot.y / 1.2)];
    return { x, y: [floor10(Math.min(...ys)), Math.max(...peaks, ...extra.map((dot) => dot.y)) * HALF_DECADE] };
  }

  function decades([low, high], most) {
    const first = Math.ceil(Math.log10(low) - 1e-9);
    const last = Math.floor(Math.log10(high) + 1e-9);
    const step = Math.ceil((last - first + 1) / most);
    const found = [];
    for (let exponent = first; exponent <= last; exponent += step) found.push(10 ** exponent);
    return { found, step };
  }

  const round = (text) => text.replace(/\.0+(?= )/, "");
  const xLabel = (value) => (value >= BIG_X ? round(si(value, "")).trim() : significant(value, 1));
  const yLabel = (value) => round(si(value, "FLOP/s"));

  // Where a text of that width lies that begins, has its middle or ends at a place; a turned one begins there.
  function boxOf({ x, y, anchor, turn }, width) {
    const angle = ((turn || 0) * Math.PI) / 180;
    const left = x + { start: 0, middle: -width / 2, end: -width }[anchor];
    return [left, y - LINE_PX - Math.sin(angle) * width, left + Math.cos(angle) * width, y + 4];
  }

  // Widths of texts without a layout of the page for each.
  const ruler = document.createElement("canvas").getContext("2d");
  const FONTS = { strong: "600 13px" };
  function widthOf(text, kind, family) {
    ruler.font = `${FONTS[kind] || "12px"} ${family}`;
    return ruler.measureText(text).width;
  }

  class Drawing {
    constructor(svg, width, scene) {
      this.svg = svg;
      this.family = getComputedStyle(svg).fontFamily;
      this.narrow = width < NARROW_PX;
      this.width = Math.max(240, width);
      this.height = this.narrow ? 300 : 420;
      this.left = this.narrow ? 72 : MARGIN.left;
      this.right = this.width - MARGIN.right;
      this.bottom = this.height - MARGIN.bottom;
      const { x, y } = domains(scene.machines, scene.extra);
      this.x = x;
      this.y = y;
      this.taken = [];
    }

    px(x) {
      const [low, high] = this.x;
      return this.left + ((this.right - this.left) * Math.log(x / low)) / Math.log(high / low);
    }

    py(y) {
      const [low, high] = this.y;
      return this.bottom - ((this.bottom - MARGIN.top) * Math.log(y / low)) / Math.log(high / low);
    }

    add(name, attributes, text) {
      return this.svg.appendChild(element(name, attributes, text));
    }

    line(kind, x1, y1, x2, y2) {
      this.add("line", { class: kind, x1: this.px(x1), y1: this.py(y1), x2: this.px(x2), y2: this.py(y2) });
    }

    // A text at the first place where it meets no other one, whole or shorter; if it must stand, at the first inside.
    text(names, places, { kind = "label", must = true } = {}) {
      const meets = ([a, b, c, d]) => this.taken.some(([e, f, g, h]) => a < g && c > e && b < h && d > f);
      const inside = ([a, b, c, d]) => a >= this.left - 2 && c <= this.right + 2 && b >= 0 && d <= this.bottom + 2;
      let found = null;
      let anyway = null;
      for (const name of names) {
        const width = widthOf(unbroken(name), kind, this.family);
        const spots = places.map((place) => ({ ...place, name, width, box: boxOf(place, width) }));
        found = spots.find(({ box }) => inside(box) && !meets(box));
        anyway = spots.find(({ box }) => inside(box)) || spots[0];
        if (found) break;
      }
      const spot = found || (must ? anyway : null);
      if (!spot) return;
      const place = { class: kind, x: spot.x, y: spot.y, "text-anchor": spot.anchor };
      const made = this.add("text", place, unbroken(spot.name));
      if (spot.turn) {
        made.setAttribute("transform", `rotate(${-spot.turn} ${spot.x} ${spot.y})`);
        this.keepSlope(spot);
      } else this.taken.push(spot.box);
    }

    // A sloped text is no box: its corners are free.
    keepSlope({ x, y, turn, width }) {
      const angle = (turn * Math.PI) / 180;
      for (let at = 0; at < width; at += LINE_PX) {
        const [cx, cy] = [x + Math.cos(angle) * at, y - Math.sin(angle) * at];
        this.taken.push([cx, cy - LINE_PX, cx + LINE_PX, cy + 2]);
      }
    }

    grid() {
      const wide = this.right - this.left;
      const xs = decades(this.x, Math.max(3, Math.floor(wide / 64)));
      const ys = decades(this.y, 8);
      const perDecade = wide / Math.log10(this.x[1] / this.x[0]);
      const minor = (value, [low, high], draw) => {
        for (const step of [2, 5]) if (value * step > low && value * step < high) draw(value * step);
      };
      const across = (kind, y) => this.line(kind, this.x[0], y, this.x[1], y);
      const upright = (kind, x) => this.line(kind, x, this.y[0], x, this.y[1]);
      for (const value of xs.found) {
        if (xs.step === 1 && perDecade > MINOR_FROM_PX) minor(value, this.x, (x) => upright("minor", x));
        upright("grid", value);
        const x = this.px(value);
        const anchor = this.right - x < EDGE_PX ? "end" : "middle";
        const at = anchor === "end" ? this.right + MARGIN.right : x;
        this.add("text", { class: "axis", x: at, y: this.bottom + 20, "text-anchor": anchor }, xLabel(value));
      }
      for (const value of ys.found) {
        if (ys.step === 1 && perDecade > MINOR_FROM_PX) minor(value, this.y, (y) => across("minor", y));
        across("grid", value);
        const place = { class: "axis", x: this.left - 8, y: this.py(value) + 4, "text-anchor": "end" };
        this.add("text", place, unbroken(yLabel(value)));
      }
      const middle = (this.left + this.right) / 2;
      this.add("text", { class: "axis", x: middle, y: this.height - 4, "text-anchor": "middle" }, "Arithmetic intensity (FLOP/B)");
    }

    // Slopes end at the highest flat roof, flat roofs begin at the memory's slope.
    roofs({ bandwidth, l2, link, pipes, kind }) {
      const top = Math.max(...pipes.map((pipe) => pipe.peak));
      const slope = (rate, look) => {
        const low = Math.max(this.x[0], this.y[0] / rate);
        const high = Math.min(this.x[1], top / rate);
        if (low < high) this.line(look, low, low * rate, high, high * rate);
      };
      slope(bandwidth, `roof ${kind}`);
      if (l2) {
        slope(l2, `roof l2 ${kind}`);
        // The flat roof goes on to where bytes from L2 would meet it.
        if (top / l2 < this.x[1]) this.line(`roof l2 ${kind}`, Math.max(top / l2, this.x[0]), top, Math.min(top / bandwidth, this.x[1]), top);
      }
      if (link) slope(link.rate, `roof link ${kind}`);
      for (const { peak } of pipes) {
        const ridge = peak / bandwidth;
        this.line(`roof ${kind}`, Math.max(ridge, this.x[0]), peak, this.x[1], peak);
        this.line(`ridge ${kind}`, ridge, this.y[0], ridge, peak);
      }
    }

    names({ bandwidth, memory, l2, link, pipes, who }, lower) {
      const turn = (Math.atan2(this.py(1) - this.py(10), this.px(10) - this.px(1)) * 180) / Math.PI;
      const top = Math.max(...pipes.map((pipe) => pipe.peak));
      const along = (rate, starts, words) => {
        const low = Math.max(this.x[0], this.y[0] / rate);
        const high = Math.min(this.x[1], top / rate);
        const places = starts.map((part) => {
          const x = low * (high / low) ** part;
          const angle = (turn * Math.PI) / 180;
          const lift = lower ? -(LINE_PX + 1) : GAP_PX;
          return { x: this.px(x) - Math.sin(angle) * lift, y: this.py(x * rate) - Math.cos(angle) * lift, anchor: "start", turn };
        });
        if (low < high) this.text(words, places, { must: false });
      };
      for (const { label, peak } of pipes) {
        const [above, below] = [this.py(peak) - GAP_PX, this.py(peak) + LINE_PX];
        const sides = lower ? [below, above] : [above, below];
        const places = [0, 0.15, 0.3].flatMap((part) => {
          const x = this.right - 4 - part * (this.right - this.left);
          return sides.map((y) => ({ x, y, anchor: "end" }));
        });
        this.text([`${who}${label} ${si(peak, "FLOP/s")}`, `${label} ${si(peak, "FLOP/s")}`], places);
      }
      along(bandwidth, [0.08, 0.25, 0.45, 0.6], [`${who}${memory} ${si(bandwidth, "B/s")}`, `${memory} ${si(bandwidth, "B/s")}`]);
      if (l2) along(l2, [0.08, 0.25, 0.45], [`L2 ${si(l2, "B/s")}`]);
      if (link) along(link.rate, [0.08, 0.25, 0.45], [`${who}${link.label}`, link.label]);
      for (const { peak } of pipes) {
        const x = this.px(peak / bandwidth);
        const rows = [0, 1, 2].flatMap((row) => {
          const y = this.bottom - GAP_PX - row * LINE_PX;
          return [{ x: x + 5, y, anchor: "start" }, { x: x - 5, y, anchor: "end" }];
        });
        this.text([`ridge ${significant(peak / bandwidth)}`], rows, { kind: "note", must: false });
      }
    }

    symbol({ x, y, regime }, radius, kind) {
      const [cx, cy] = [this.px(x), this.py(y)];
      const look = `${kind} ${regime}`;
      if (regime === "compute") {
        const side = radius * 1.77;
        return this.add("rect", { class: look, x: cx - side / 2, y: cy - side / 2, width: side, height: side });
      }
      if (regime === "overhead") {
        const far = radius * 1.25;
        return this.add("path", { class: look, d: `M${cx} ${cy - far}L${cx + far} ${cy}L${cx} ${cy + far}L${cx - far} ${cy}Z` });
      }
      if (regime === "communication") {
        const far = radius * 1.15;
        const path = `M${cx} ${cy + far}L${cx - far} ${cy - far * 0.8}H${cx + far}Z`;
        return this.add("path", { class: look, d: path });
      }
      return this.add("circle", { class: look, cx, cy, r: radius });
    }

    keep({ x, y }, radius) {
      const [cx, cy] = [this.px(x), this.py(y)];
      this.taken.push([cx - radius, cy - radius, cx + radius, cy + radius]);
    }

    // Beside a dot comes last: a dot at its roof has the roof there.
    around({ x, y }, radius) {
      const [cx, cy] = [this.px(x), this.py(y)];
      const off = radius + GAP_PX;
      const below = cy + off + LINE_PX - 4;
      return [
        [cx + off, below - 4, "start"], [cx, below, "middle"], [cx - off, below, "end"], [cx, cy - off, "middle"],
        [cx - off, cy - off, "end"], [cx, below + LINE_PX, "end"], [cx + off, cy + 4, "start"], [cx - off, cy + 4, "end"],
      ].map(([left, top, anchor]) => ({ x: left, y: top, anchor }));
    }
  }

  const PART_PX = { least: 4, most: 10 };
  const DOT_PX = 8;

  /*
   * scene: title, subtitle; machines [{who, kind, bandwidth, memory, l2, link, pipes: [{label, peak}], dot, parts}];
   * extra [{x, y, words}]. A dot is {x, y, regime, names}, a part {x, y, regime, words, share}, with its share of the floor.
   */
  function draw(svg, width, scene) {
    svg.replaceChildren();
    const plane = new Drawing(svg, width, scene);
    svg.setAttribute("viewBox", `0 0 ${plane.width} ${plane.height}`);
    svg.setAttribute("height", plane.height);
    plane.add("text", { class: "title", x: plane.left, y: 16 }, scene.title);
    // A narrow drawing has no room for many sizes; the fields beside it show them.
    const room = plane.right - plane.left - SAVE_PX;
    if (widthOf(scene.subtitle, "note", plane.family) <= room) {
      plane.add("text", { class: "note", x: plane.left, y: 34 }, scene.subtitle);
    }
    plane.grid();
    for (const machine of [...scene.machines].reverse()) plane.roofs(machine);
    const [first] = scene.machines;
    const radius = (share) => PART_PX.least + (PART_PX.most - PART_PX.least) * Math.sqrt(share);
    for (const machine of scene.machines) {
      for (const part of machine.parts) plane.keep(part, radius(part.share));
      if (machine.dot) plane.keep(machine.dot, DOT_PX);
    }
    for (const machine of scene.machines) {
      plane.names(machine, scene.machines.length > 1 && machine.bandwidth < Math.max(...scene.machines.map((one) => one.bandwidth)));
    }
    for (const { x, y, words, top } of scene.extra) {
      plane.line("gap", x, y, x, top);
      plane.add("circle", { class: "measured", cx: plane.px(x), cy: plane.py(y), r: DOT_PX });
      plane.keep({ x, y }, DOT_PX);
      plane.text([words], plane.around({ x, y }, DOT_PX), { kind: "strong" });
    }
    for (const machine of [...scene.machines].reverse()) {
      for (const part of machine.parts) {
        plane.symbol(part, radius(part.share), `part ${machine.kind}`).append(element("title", {}, part.words));
      }
      if (machine.dot) plane.symbol(machine.dot, DOT_PX, `dot ${machine.kind}`);
    }
    for (const machine of scene.machines) {
      if (machine.dot) plane.text(machine.dot.names, plane.around(machine.dot, DOT_PX), { kind: "strong" });
    }
    for (const part of [...first.parts].sort((a, b) => b.share - a.share)) {
      plane.text([part.words], plane.around(part, radius(part.share)), { kind: "note", must: false });
    }
  }

  // A picture of its own: looks come from the page's style sheet, and are written into the copy.
  const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "paint-order", "font-family",
    "font-size", "font-weight", "opacity"];
  function picture(svg) {
    const copy = svg.cloneNode(true);
    const from = [svg, ...svg.querySelectorAll("*")];
    for (const [i, to] of [copy, ...copy.querySelectorAll("*")].entries()) {
      const look = getComputedStyle(from[i]);
      for (const name of LOOKS) to.style.setProperty(name, look.getPropertyValue(name));
    }
    copy.setAttribute("xmlns", NS);
    copy.setAttribute("width", svg.viewBox.baseVal.width);
    const page = getComputedStyle(document.documentElement).getPropertyValue("--page");
    copy.prepend(element("rect", { width: "100%", height: "100%", fill: page }));
    return new XMLSerializer().serializeToString(copy);
  }

  return { draw, picture };
})();
