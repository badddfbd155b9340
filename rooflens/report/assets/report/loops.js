// A chosen loop: its bar, the lines that belong to it, and its ring in the plane, here and on cards.
(() => {
  const page = document.querySelector("[data-loops-of]");
  const mine = (element) => element.closest("[data-loops-of]").dataset.loopsOf;
  const shown = () => lens.state.k || page?.dataset.loopsOf || "";

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-loop]");
    if (!button) return;
    const k = mine(button);
    const loop = button.getAttribute("aria-pressed") === "true" ? "" : button.dataset.loop;
    lens.set(k === shown() ? { loop } : { k, loop });
  });
  lens.on(({ loop }) => {
    for (const button of document.querySelectorAll("[data-loop]")) {
      const chosen = loop !== "" && mine(button) === shown() && button.dataset.loop === loop;
      button.setAttribute("aria-pressed", String(chosen));
      button.closest("tr").classList.toggle("chosen", chosen);
    }
    for (const line of document.querySelectorAll("[data-in]")) {
      line.classList.toggle("chosen", loop !== "" && mine(line) === shown() && line.dataset.in.split(" ").includes(loop));
    }
  });
})();
