// A command has a button that copies it.
(() => {
  const COMMAND = /^(rooflens|ncu|nsys|nv-nsight-cu-cli) \S/;
  const SHOWN_MS = 2000;
  async function copied(code) {
    try {
      await navigator.clipboard.writeText(code.textContent.replaceAll("\u00a0", " "));
      return true;
    } catch {
      // Without a clipboard the command is at least selected, for the keys that copy.
      getSelection().selectAllChildren(code);
      return false;
    }
  }
  for (const code of document.querySelectorAll("main code")) {
    if (!COMMAND.test(code.textContent)) continue;
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "quiet copy", textContent: "Copy" });
    button.setAttribute("aria-label", "Copy the command");
    button.addEventListener("click", async (event) => {
      event.preventDefault();
      event.stopPropagation();
      button.textContent = (await copied(code)) ? "Copied" : "Selected";
      setTimeout(() => { button.textContent = "Copy"; }, SHOWN_MS);
    });
    code.after(" ", button);
  }
})();
