// Charts: drawn when they have a width, fitted when it changes, redrawn with the theme, told of every choice.
(() => {
  const NARROW_PX = 480;
  const STILL_PX = 4;
  const HEIGHTS_PX = { narrow: 320, wide: 440 };
  const themes = lens.data("themes");

  const figures = [];
  function figureIn(box) {
    const spec = lens.data(box.dataset.spec);
    const defaults = new Map((spec.params || []).filter((param) => !param.bind).map((param) => [param.name, param.value]));
    const levels = (box.closest(".plane")?.dataset.levels || "").split(" ");
    const turn = Promise.resolve();
    return { box, defaults, levels, view: null, theme: "", narrow: false, room: 0, margin: 96, zoom: "", turn };
  }
  const figureOf = (element) => figures.find((figure) => figure.box === element);

  // What the choices mean to a chart; one that shows nothing picked keeps what its specification picked.
  function values(figure) {
    const { state } = lens;
    const item = lens.picked();
    return {
      hidden: lens.hidden(),
      kernel: item ? item.g : "",
      picked: state.k || figure.defaults.get("picked"),
      level: figure.levels.includes(state.level) ? state.level : figure.defaults.get("level"),
      move: Number(state.move) || 0,
      loop: state.loop,
      at: state.at || figure.defaults.get("at"),
      ranks: lens.ranks ? lens.ranks() : null,
    };
  }

  function tell(figure) {
    let changed = false;
    for (const [name, value] of Object.entries(values(figure))) {
      if (!figure.defaults.has(name) || figure.view.signal(name) === value) continue;
      figure.view.signal(name, value);
      changed = true;
    }
    return zoomed(figure) || changed;
  }

  function sized(figure, width) {
    const spec = lens.data(figure.box.dataset.spec);
    const parts = spec.vconcat || [spec];
    const height = figure.narrow ? HEIGHTS_PX.narrow : HEIGHTS_PX.wide;
    for (const part of parts) part.width = width;
    if (parts[0].name === "plane") parts[0].height = height;
    for (const param of spec.params || []) {
      if (param.name === "w") param.value = width;
      if (param.name === "h") param.value = height;
    }
    return spec;
  }

  async function embed(figure) {
    if (figure.view) figure.view.finalize();
    const { view } = await vegaEmbed(figure.box, sized(figure, Math.max(160, figure.room - figure.margin)), {
      ast: true, renderer: "svg", actions: false, config: themes[figure.theme], tooltip: { disableDefaultStyle: true },
    });
    figure.view = view;
    figure.zoom = "";
    // The box of a zoom has no words, and says nothing to those who do not see it.
    for (const mark of figure.box.querySelectorAll('[class*="_brush"]')) mark.setAttribute("aria-hidden", "true");
    follow(figure);
    if (hasPlane(figure)) watch(figure);
  }

  // A press that moved is a drag of the plane, not a choice.
  function follow(figure) {
    let from = null;
    figure.view.addEventListener("pointerdown", (event) => {
      from = [event.clientX, event.clientY];
    });
    figure.view.addEventListener("click", (event, item) => {
      const moved = from && Math.hypot(event.clientX - from[0], event.clientY - from[1]) > STILL_PX;
      const key = item?.datum?.k;
      if (!moved && key && (event.ctrlKey || event.metaKey)) lens.join(key);
      else if (!moved && key) lens.set({ k: key === lens.state.k ? "" : key });
    });
  }

  // What stands left and right of the plane is known only once drawn; the drawing is then fitted, not made again.
  async function fit(figure) {
    const { view } = figure;
    const total = figure.box.querySelector("svg").width.baseVal.value;
    const width = Math.max(160, view.width() + Math.floor(figure.room - total));
    figure.margin = figure.room - width;
    if (width === view.width()) return;
    view.width(width);
    if (figure.defaults.has("w")) view.signal("w", width);
    await view.runAsync();
  }

  async function draw(figure) {
    const room = figure.box.clientWidth;
    if (!room) return;
    const narrow = room < NARROW_PX;
    const fresh = !figure.view || figure.theme !== theme() || figure.narrow !== narrow;
    const fits = figure.room === room;
    Object.assign(figure, { room, theme: theme(), narrow });
    if (fresh) await embed(figure);
    if (tell(figure)) await figure.view.runAsync();
    if (fresh || !fits) await fit(figure);
    figure.box.dataset.drawn = figure.theme;
  }

  // One drawing at a time, what is in sight first, with a breath between so that each is seen when it is ready.
  let queue = Promise.resolve();
  const breath = () => new Promise((resume) => setTimeout(resume));
  let isPaper = false;
  const theme = () => (isPaper ? "light" : lens.theme());
  function request(figure) {
    figure.turn = Promise.all([queue, figure.turn]).then(() => draw(figure)).catch(reportError);
    queue = figure.turn.then(breath);
  }
  function requestAll(some = figures) {
    const inSight = (figure) => (figure.box.getBoundingClientRect().top < innerHeight ? 0 : 1);
    for (const figure of [...some].sort((a, b) => inSight(a) - inSight(b))) request(figure);
  }

  // A roofline belongs to one GPU: the chosen one, that of the isolated kernel, or the first one that the filters leave
  // a kernel on. Where they leave none it says so.
  const planes = [...document.querySelectorAll(".plane")];
  function gpusLeft() {
    const hidden = lens.hidden();
    return new Set([...lens.items.values()].filter((item) => !hidden[item.k]).map((item) => item.gpu));
  }
  function showPlanes(every = false) {
    const wanted = lens.state.gpu || lens.picked()?.gpu;
    const left = gpusLeft();
    const shown = planes.find((plane) => plane.dataset.gpu === wanted)
      || planes.find((plane) => left.has(plane.dataset.gpu)) || planes[0];
    for (const plane of planes) {
      plane.hidden = plane !== shown && !every;
      const empty = plane.querySelector("[data-empty]");
      if (empty) empty.hidden = left.has(plane.dataset.gpu) || !lens.filtered();
      const radios = [...plane.querySelectorAll(".levels input")];
      const chosen = radios.find((radio) => radio.value === lens.state.level);
      const level = chosen || radios.find((radio) => radio.defaultChecked);
      if (level) level.checked = true;
    }
  }

  // Paper does not wait: what a browser prints must be drawn before its event ends, in promises alone. It holds the
  // rooflines of all GPUs unless one was chosen.
  function print() {
    isPaper = true;
    showPlanes(lens.state.gpu === "");
    for (const figure of figures) figure.turn = figure.turn.then(() => draw(figure)).catch(reportError);
  }

  // What has a width that it was not drawn for; of that an observer hears only in the next frame.
  function redraw(figure) {
    const { clientWidth } = figure.box;
    if (clientWidth && (clientWidth !== figure.room || figure.theme !== theme())) request(figure);
  }
  lens.settled = async () => {
    figures.forEach(redraw);
    for (const figure of figures) await figure.turn.then(() => figure.view?.runAsync());
  };
  const room = new ResizeObserver((entries) => {
    for (const { target } of entries) redraw(figureOf(target));
  });
  // A page is drawn as far as it is read: what stands below these scripts follows when all is.
  function adopt() {
    const boxes = [...document.querySelectorAll(".chart[data-spec]")].filter((box) => !figureOf(box));
    const found = boxes.map(figureIn);
    figures.push(...found);
    requestAll(found);
    for (const box of boxes) room.observe(box);
  }
  showPlanes();
  adopt();
  document.addEventListener("DOMContentLoaded", adopt);
  addEventListener("lens:theme", () => requestAll());
  addEventListener("beforeprint", print);
  addEventListener("afterprint", () => {
    isPaper = false;
    showPlanes();
    requestAll();
  });
  lens.on(() => {
    showPlanes();
    for (const figure of figures) if (figure.view && tell(figure)) figure.view.runAsync();
  });

  // What is in sight of a plane, as the address has it: low and high x, low and high y; "" for what is seen first.
  const AXES = ["x", "y"];
  const DIGITS = 4;
  const hasPlane = (figure) => figure.defaults.has("whole");
  const ENDS = ["x0", "x1", "y0", "y1"];
  const inSight = (figure) => ENDS.map((end) => figure.view.signal(end));
  const whole = (figure) => {
    const [all, first] = ["whole", "base"].map((name) => figure.view.signal(name));
    return all.map((end, i) => (i % 2 ? Math.max : Math.min)(end, first[i]));
  };
  const words = (domains) => domains.map((value) => Number(value.toPrecision(DIGITS))).join(",");
  function zoomed(figure) {
    const { zoom } = lens.state;
    if (!hasPlane(figure) || figure.zoom === zoom || figure.box.closest(".plane").hidden) return false;
    const wanted = zoom.split(",").map(Number);
    const fits = wanted.length === 4 && wanted[0] > 0 && wanted[2] > 0 && wanted[0] < wanted[1] && wanted[2] < wanted[3];
    for (const [i, axis] of AXES.entries()) {
      figure.view.signal(`zoom_${axis}`, fits && wanted.every(Number.isFinite) ? wanted.slice(2 * i, 2 * i + 2) : null);
    }
    figure.zoom = zoom;
    return true;
  }
  // A drag or the wheel moves what is in sight: the address follows when it rests.
  const REST_MS = 250;
  function watch(figure) {
    let waiting = 0;
    figure.view.addSignalListener("box", (_, box) => {
      if (box.x && box.y) figure.boxed = [...box.x, ...box.y];
    });
    const moved = () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        const sight = inSight(figure);
        const isFirst = words(sight) === words(figure.view.signal("base"));
        const now = isFirst ? "" : words(sight);
        if (figure.box.closest(".plane").hidden || now === figure.zoom) return;
        figure.zoom = now;
        lens.set({ zoom: now });
      }, REST_MS);
    };
    for (const end of ENDS) figure.view.addSignalListener(end, moved);
  }

  // A drag with shift held: what its box encloses fills the plane, and Back leads out again.
  addEventListener("pointerup", () => setTimeout(() => {
    for (const figure of figures.filter(({ boxed }) => boxed)) {
      const { boxed } = figure;
      figure.boxed = null;
      const sight = inSight(figure);
      const parts = [0, 2].map((i) => Math.log(boxed[i + 1] / boxed[i]) / Math.log(sight[i + 1] / sight[i]));
      if (Math.min(...parts) > LEAST_PART) lens.set({ zoom: words(grown(boxed, parts)) });
    }
  }));
  const LEAST_PART = 0.02;
  // The axes keep their proportions, as the slopes of names rely on them: the shorter side grows about its middle.
  function grown(box, parts) {
    return [0, 2].flatMap((i) => {
      const middle = Math.sqrt(box[i] * box[i + 1]);
      const half = (box[i + 1] / box[i]) ** (Math.max(...parts) / parts[i / 2] / 2);
      return [middle / half, middle * half];
    });
  }

  // Both axes move by the same factor: the slopes that labels follow stay as they are.
  const STEPS = { in: 0.5, out: 2 };
  const AIR = Math.sqrt(10);
  function stepped(figure, step) {
    const sight = inSight(figure);
    const all = whole(figure);
    const next = [0, 2].flatMap((i) => {
      const [low, high] = sight.slice(i);
      const middle = Math.sqrt(low * high);
      const half = (high / low) ** (STEPS[step] / 2);
      return [middle / half, middle * half];
    });
    return next[1] / next[0] > 0.999 * (all[1] / all[0]) ? all : next;
  }
  // The selected kernel: its levels, its roof, and its ghost.
  function around(figure) {
    const { view } = figure;
    const picked = view.signal("picked");
    const own = view.data("points").filter((row) => row.k === picked);
    const ghosts = view.data("ghosts").filter((row) => row.k === picked && row.m === view.signal("move"));
    if (!own.length) return null;
    const xs = [...own, ...ghosts].map((row) => row.x);
    const ys = [...own, ...ghosts].flatMap((row) => [row.y, row.limit || row.y]);
    return [xs, ys].flatMap((all) => [Math.min(...all) / AIR, Math.max(...all) * AIR]);
  }
  function zoom(figure, step) {
    const isWhole = words(inSight(figure)) === words(whole(figure));
    const next = {
      in: () => stepped(figure, "in"),
      out: () => stepped(figure, "out"),
      picked: () => around(figure),
      whole: () => (isWhole ? null : whole(figure)),
      reset: () => null,
    }[step]();
    lens.set({ zoom: next ? words(next) : "" });
  }
  const onPress = (selector, act) => document.addEventListener("click", (event) => {
    const button = event.target.closest(selector);
    if (button) act(button);
  });
  onPress("[data-zoom]", (button) => {
    const figure = figureOf(button.closest(".plane").querySelector(".chart"));
    if (figure.view && hasPlane(figure)) zoom(figure, button.dataset.zoom);
  });

  onPress("[data-export]", async (button) => {
    const { view, box } = figureOf(button.closest(".drawing").querySelector(".chart"));
    const link = document.createElement("a");
    link.href = await view.toImageURL(button.dataset.export, 2);
    link.download = lens.fileName(`${box.dataset.spec.replace(/^spec-|-0$/g, "")}.${button.dataset.export}`);
    link.click();
  });
  // The first chart in sight as a picture, or null.
  lens.picture = async (scale) => {
    const figure = figures.find(({ view, box }) => view && box.checkVisibility());
    return figure ? figure.view.toCanvas(scale) : null;
  };
})();
