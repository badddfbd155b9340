// Theme, and the sheet that has its switch: the system's until the reader chooses one; paper is light whatever the screen shows.
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

  // The sheet of keys and theme.
  const sheet = document.getElementById("keys");
  const open = () => sheet.open || sheet.showModal();
  document.getElementById("help").addEventListener("click", open);
  document.getElementById("keys-close").addEventListener("click", () => sheet.close());
  const WRITES = "input:not([type=radio], [type=checkbox], [type=range]), select, textarea";
  addEventListener("keydown", (event) => {
    if (event.key === "?" && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest?.(WRITES)) open();
  });
})();
