// Cards: a row of the list opens its kernel's card below itself, and a launch of it its own; a link to one opens both.
lens.cards = (() => {
  const PRINTED = 12;
  const store = document.getElementById("cards");
  const { list } = lens;
  const blocks = [...store.children];
  const cards = new Map([...store.querySelectorAll("details.card")].map((card) => [card.id, card]));
  const blockOf = new Map(list ? list.rows.map((row) => [row, blocks.find((one) => one.dataset.of === row.dataset.g)]) : []);
  const lines = [...store.querySelectorAll(".launches tr[data-k]")];
  const lineOf = new Map(lines.map((line) => [line.dataset.k, line]));

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
    const block = blockOf.get(row);
    if (!block || opened.has(row)) return;
    const card = block.querySelector(":scope > .card");
    if (card) card.open = true;
    opened.add(row);
    list.table.row(row).child(below(block, list.span())).show();
    say(list.linkOf(row), true);
  }
  function close(row) {
    if (!opened.delete(row)) return;
    store.append(blockOf.get(row));
    list.table.row(row).child.remove();
    say(list.linkOf(row), false);
  }
  function toggle(row) {
    const key = row.dataset.k;
    const isMine = list.rowByKey.get(lens.state.k) === row;
    const closing = opened.has(row) || (!blockOf.get(row) && isMine);
    if (closing) close(row);
    else open(row);
    if (!closing) lens.set({ k: isMine ? lens.state.k : key });
    else if (isMine) lens.set({ k: "" });
  }

  // Launches of a kernel: its worst one has its card above them, others that have one open it in place.
  const isFirst = (card) => card.matches(".kernel > .card:first-child");
  const toggled = new Map(lines.flatMap((line) => {
    const card = cards.get(line.dataset.k);
    return card && !isFirst(card) ? [[line, { card, home: card.parentElement }]] : [];
  }));
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
  for (const [line, { card }] of toggled) {
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
    for (const [row, block] of blockOf) if (block) say(list.linkOf(row), false);
  }

  // A link leads to the row; a launch of its own card leads to that.
  function reveal(key) {
    const row = list?.rowByKey.get(key);
    if (row) open(row);
    const line = lineOf.get(key);
    const place = toggled.has(line) ? line : row || cards.get(key);
    if (toggled.has(line)) openLaunch(line);
    place?.scrollIntoView();
    return place;
  }
  lens.on((state) => {
    const hidden = lens.hidden();
    for (const line of lines) {
      if (line.dataset.k === state.k) line.setAttribute("aria-current", "true");
      else line.removeAttribute("aria-current");
      if (!hidden[line.dataset.k] === line.hidden) line.hidden = !line.hidden;
    }
    // A link to a card: the address still holds its key when listeners run.
    if (lens.linked() && lens.linked() === state.k) reveal(state.k)?.querySelector("a")?.focus({ preventScroll: true });
  });
  // Charts above a card that was linked to get their height after it was scrolled to.
  const first = lens.linked();
  if (first) lens.settled().then(() => reveal(first));

  // Paper has the list, then the cards: those that matter, and those the reader opened, are open.
  let restore = () => {};
  addEventListener("beforeprint", () => {
    const rows = [...opened];
    const launches = [...toggled.keys()].filter((line) => toggled.get(line).card.open);
    const ranked = new Set([...document.querySelectorAll(".ranking > li:not([hidden]) a[href^='#k']")].map((link) => link.hash.slice(1)));
    const wanted = new Set([...rows.map((row) => row.dataset.k), ...launches.map((line) => line.dataset.k), ...ranked]);
    for (const line of launches) closeLaunch(line);
    for (const row of rows) close(row);
    store.append(...blocks);
    store.hidden = false;
    for (const block of blocks) block.classList.remove("live");
    const before = new Map([...cards.values()].map((card) => [card, card.open]));
    for (const card of cards.values()) card.open = cards.size <= PRINTED || wanted.has(card.id);
    restore = () => {
      for (const [card, open] of before) card.open = open;
      for (const block of blocks) block.classList.add("live");
      store.hidden = Boolean(list);
      for (const row of rows) open(row);
      for (const line of launches) openLaunch(line);
    };
  });
  addEventListener("afterprint", () => restore());

  return { toggle, all: cards };
})();
