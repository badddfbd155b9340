// Cards: a link to one opens it; the isolated kernel's is marked; on paper the ones that matter are open.
(() => {
  const PRINTED = 12;
  const cards = [...document.querySelectorAll("details.card")];

  function open(key) {
    const card = document.getElementById(key);
    if (!card) return;
    card.open = true;
    card.scrollIntoView();
  }
  lens.on((state) => {
    for (const card of cards) card.classList.toggle("current", card.id === state.k);
    // A link to a card: the address still holds its key when listeners run.
    if (lens.linked() && lens.linked() === state.k) open(state.k);
  });
  // Charts above a card that was linked to get their height after it was scrolled to.
  const first = lens.linked();
  if (first) lens.settled().then(() => open(first));

  let opened = [];
  addEventListener("beforeprint", () => {
    const ranked = new Set([...document.querySelectorAll(".ranking a[href^='#k']")].map((link) => link.hash.slice(1)));
    opened = cards.filter((card) => !card.open && (cards.length <= PRINTED || ranked.has(card.id)));
    for (const card of opened) card.open = true;
  });
  addEventListener("afterprint", () => {
    for (const card of opened) card.open = false;
  });
})();
