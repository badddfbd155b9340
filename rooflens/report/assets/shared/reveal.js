// What needs scripts is shown once they run.
(() => {
  for (const element of document.querySelectorAll(".scripted")) element.hidden = false;
})();
