// Cards: a row of the list opens its kernel's card below itself, and a launch of it its own; a link to one opens both.
// They wait as text inside <noscript>, which costs a browser next to nothing, and become elements when they are asked for.
lens.cards = (() => {
  const PRINTED = 12;
  const store = document.getElementById("cards");
  const { list } = lens;
  const blocks = [...store.children];
  const blockByKernel = new Map(blocks.map((block) => [block.dataset.of, block]));
  const blockOf = (row) => blockByKernel.get(row.dataset.g);

  // What was made: card by its launch, line of a launch by that, and the card that a line opens in place.
  const cards = new Map();
  const lines = new Map();
  const toggled = new Map();
  const made = new Set();
  function make(block) {
    if (!block || made.has(block)) return;
    made.add(block);
    for (const waiting of block.querySelectorAll(":scope > noscript")) waiting.outerHTML = waiting.textContent;
    for (const card of block.querySelectorAll("details.card")) cards.set(card.id, card);
    const own = [...block.querySelectorAll(".launches tr[data-k]")];
    for (const line of own) lines.set(line.dataset.k, line);
    own.forEach(follow);
    mark(own);
  }
  function get(key) {
    make(blockByKernel.get(lens.items.get(key)?.g));
    return cards.get(key);
  }

  const below = (held, span) => {
    const line = document.createElement("tr");
    line.className = "opened";
    const cell = line.insertCell();
    cell.colSpan = span;
    const box = document.createElement("div");
    box.append(held);
    cell.append(box);
    return line;
  };
  const say = (link, open) => link?.setAttribute("aria-expanded", String(open));

  // Kernels.
  const opened = new Set();
  function open(row) {
    const block = blockOf(row);
    if (!block || opened.has(row)) return;
    make(block);
    const card = block.querySelector(":scope > .card");
    if (card) card.open = true;
    opened.add(row);
    list.table.row(row).child(below(block, list.span())).show();
    say(list.linkOf(row), true);
  }
  function close(row) {
    if (!opened.delete(row)) return;
    store.append(blockOf(row));
    list.table.row(row).child.remove();
    say(list.linkOf(row), false);
  }
  function toggle(row) {
    const key = row.dataset.k;
    const isMine = list.rowByKey.get(lens.state.k) === row;
    const closing = opened.has(row) || (!blockOf(row) && isMine);
    if (closing) close(row);
    else open(row);
    if (!closing) lens.set({ k: isMine ? lens.state.k : key });
    else if (isMine) lens.set({ k: "" });
  }
  // Close all rows for a while; what is returned opens them again.
  function shut() {
    const rows = [...opened];
    for (const row of rows) close(row);
    return () => rows.forEach(open);
  }

  // Launches of a kernel: its worst one has its card above them, others that have one open it in place.
  const isFirst = (card) => card.matches(".kernel > .card:first-child");
  function openLaunch(line) {
    const { card } = toggled.get(line) || {};
    if (!card || card.open) return;
    card.open = true;
    line.after(below(card, line.cells.length));
    say(line.querySelector("a"), true);
  }
  function closeLaunch(line) {
    const { card, home } = toggled.get(line);
    if (!card.open) return;
    card.open = false;
    home.append(card);
    line.nextElementSibling.remove();
    say(line.querySelector("a"), false);
  }
  function follow(line) {
    const card = cards.get(line.dataset.k);
    if (!card || isFirst(card)) return;
    toggled.set(line, { card, home: card.parentElement });
    const link = line.querySelector("a");
    say(link, false);
    line.classList.add("opens");
    line.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || !getSelection().isCollapsed) return;
      event.preventDefault();
      const opens = !card.open;
      (opens ? openLaunch : closeLaunch)(line);
      if (opens) lens.set({ k: card.id });
    });
  }

  for (const block of blocks) block.classList.add("live");
  if (list) {
    store.hidden = true;
    for (const row of list.rows) if (blockOf(row)) say(list.linkOf(row), false);
  } else {
    blocks.forEach(make);
  }

  // A link leads to the row; a launch of its own card leads to that.
  function reveal(key) {
    const row = list?.rowByKey.get(key);
    if (row) open(row);
    const card = get(key);
    const line = lines.get(key);
    const place = toggled.has(line) ? line : row || card;
    if (toggled.has(line)) openLaunch(line);
    place?.scrollIntoView();
    return place;
  }
  function mark(some) {
    const hidden = lens.hidden();
    for (const line of some) {
      if (line.dataset.k === lens.state.k) line.setAttribute("aria-current", "true");
      else line.removeAttribute("aria-current");
      if (!hidden[line.dataset.k] === line.hidden) line.hidden = !line.hidden;
    }
  }
  lens.on((state) => {
    mark(lines.values());
    // A link to a card: the address still holds its key when listeners run.
    if (lens.linked() && lens.linked() === state.k) reveal(state.k)?.querySelector("a")?.focus({ preventScroll: true });
  });
  // Charts above a card that was linked to get their height after it was scrolled to.
  const first = lens.linked() || (location.hash.startsWith("#k=") ? lens.state.k : "");
  if (first) lens.settled().then(() => reveal(first));

  // Paper has the list, then the cards: those that matter, and those the reader opened, are open.
  const paper = matchMedia("print");
  let restore = null;
  function print() {
    if (restore) return;
    blocks.forEach(make);
    const launches = [...toggled.keys()].filter((line) => toggled.get(line).card.open);
    const named = document.querySelectorAll(".ranking > li:not([hidden], .brief) .who a[href^='#k']");
    const ranked = [...named].map((link) => link.hash.slice(1));
    const wanted = new Set([...opened, ...launches].map((line) => line.dataset.k).concat(ranked));
    for (const line of launches) closeLaunch(line);
    const reopen = shut();
    store.append(...blocks);
    store.hidden = false;
    for (const block of blocks) block.classList.remove("live");
    const before = new Map([...cards.values()].map((card) => [card, card.open]));
    for (const card of cards.values()) card.open = cards.size <= PRINTED || wanted.has(card.id);
    restore = () => {
      restore = null;
      for (const [card, open] of before) card.open = open;
      for (const block of blocks) block.classList.add("live");
      store.hidden = Boolean(list);
      reopen();
      launches.forEach(openLaunch);
    };
  }
  addEventListener("beforeprint", print);
  addEventListener("afterprint", () => restore?.());
  paper.addEventListener("change", () => {
    if (paper.matches) print();
    else restore?.();
  });

  return { toggle, get, shut };
})();
