// Theme: the system's until the reader chooses one; paper is light whatever the screen shows.
(() => {
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => dispatchEvent(new Event("lens:theme"));

  lens.theme = () => root.dataset.theme || (prefersDark.matches ? "dark" : "light");
  for (const radio of document.querySelectorAll("#theme input")) {
    radio.addEventListener("change", () => {
      if (radio.value) root.dataset.theme = radio.value;
      else delete root.dataset.theme;
      tell();
    });
  }
  prefersDark.addEventListener("change", tell);
})();
