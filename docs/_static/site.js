// Beside Furo: the list of pages is long, so the one that is shown is brought into view.
document.addEventListener("DOMContentLoaded", () => {
  const list = document.querySelector(".sidebar-scroll");
  const here = list?.querySelector("li.current-page");
  if (here) list.scrollTop += here.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 3;
});
