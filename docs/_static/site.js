// Beside Furo: the list of pages is long, so the one that is shown is brought into view;
// long names in a table may break after their parts, or they push its numbers out of sight.
const LONG_NAME = 24;
document.addEventListener("DOMContentLoaded", () => {
  const list = document.querySelector(".sidebar-scroll");
  const here = list?.querySelector("li.current-page");
  if (here) list.scrollTop += here.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 3;
  for (const code of document.querySelectorAll("article table code")) {
    const parts = code.textContent.match(/[^_./]*[_./]*/g).filter(Boolean);
    if (code.childElementCount > 1 || code.textContent.length <= LONG_NAME) continue;
    code.classList.add("long");
    code.replaceChildren(...parts.flatMap((part) => [part, document.createElement("wbr")]));
  }
});
