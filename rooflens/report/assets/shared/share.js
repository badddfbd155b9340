// Share: headline, chart and name of the report as one picture, and the sentence on the clipboard.
(() => {
  const SCALE = 2;
  const LEAST_PX = 800;
  const PAD_PX = 24;
  const button = document.getElementById("share");
  if (!button) return;
  const textOf = (element) => element.textContent.replace(/\s+/g, " ").trim();
  const facts = () => [...document.querySelectorAll(".brand .facts span")].map(textOf).join(" \u00b7 ");

  // Words in lines of at most this width; one that is longer has a line of its own, and is squeezed into it.
  function lines(pen, text, width) {
    const found = [""];
    for (const word of text.split(" ")) {
      const longer = `${found.at(-1)} ${word}`.trim();
      if (found.at(-1) === "" || pen.measureText(longer).width <= width) found[found.length - 1] = longer;
      else found.push(word);
    }
    return found;
  }
  function draw(chart) {
    const sheet = document.createElement("canvas");
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    const width = Math.max(LEAST_PX, (chart?.width || 0) / SCALE + 2 * PAD_PX);
    const text = width - 2 * PAD_PX;
    const fonts = { head: `600 26px ${colour("font")}`, foot: `12px ${colour("font")}` };
    let pen = sheet.getContext("2d");
    pen.font = fonts.head;
    const head = lines(pen, textOf(document.querySelector("h1")), text);
    pen.font = fonts.foot;
    const foot = lines(pen, `${facts()} \u00b7 rooflens`, text);
    const chartPx = chart ? chart.height / SCALE + PAD_PX : 0;
    sheet.width = SCALE * width;
    sheet.height = SCALE * (2 * PAD_PX + 32 * head.length + chartPx + 16 * foot.length);
    pen = sheet.getContext("2d");
    pen.scale(SCALE, SCALE);
    pen.fillStyle = colour("page");
    pen.fillRect(0, 0, width, sheet.height);
    let top = PAD_PX + 24;
    const write = (words, font, ink, step) => {
      pen.font = font;
      pen.fillStyle = colour(ink);
      for (const line of words) {
        pen.fillText(line, PAD_PX, top, text);
        top += step;
      }
    };
    write(head, fonts.head, "ink", 32);
    if (chart) pen.drawImage(chart, PAD_PX, top - 16, chart.width / SCALE, chart.height / SCALE);
    top += chartPx - 8;
    write(foot, fonts.foot, "muted", 16);
    return sheet;
  }
  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // A browser that has no clipboard for files still saves the picture.
      return false;
    }
  }
  button.addEventListener("click", async () => {
    const copied = await copy(`${textOf(document.querySelector("h1"))} (${facts()})`);
    const sheet = draw(await lens.picture(SCALE));
    const link = document.createElement("a");
    link.href = sheet.toDataURL("image/png");
    link.download = lens.fileName("rooflens.png");
    link.click();
    document.getElementById("shared").textContent = copied ? "Picture saved, sentence copied" : "Picture saved";
    button.textContent = copied ? "Saved and copied" : "Saved";
    setTimeout(() => {
      button.textContent = "Share";
    }, 2000);
  });
})();
