// What a reader chooses: parts that all stand on the page come into sight; nothing is worked out here.
(() => {
  const box = document.querySelector(".choice");
  const controls = [...box.querySelectorAll(".choices input, .choices select")];
  const parts = [...box.querySelectorAll("[data-at]")];
  const first = controls.map((control) => control.value);

  function say(slider) {
    const name = slider.parentElement.querySelectorAll("datalist option")[slider.value].textContent;
    slider.setAttribute("aria-valuetext", name);
    slider.parentElement.querySelector("output").textContent = name;
  }
  function show({ at }) {
    const asked = at.split(".");
    for (const [i, control] of controls.entries()) {
      control.value = at === "" ? first[i] : asked[i] ?? first[i];
      if (control.value === "") control.value = first[i];
      if (control.type === "range") say(control);
    }
    const chosen = controls.map((control) => control.value);
    for (const part of parts) {
      part.hidden = !part.dataset.at.split(".").every((one, i) => one === "" || one === chosen[i]);
    }
  }
  for (const control of controls) {
    control.addEventListener("input", () => lens.set({ at: controls.map((one) => one.value).join(".") }));
  }
  lens.on(show);
})();
