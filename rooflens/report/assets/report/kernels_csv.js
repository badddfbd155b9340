// The list as CSV: the kernels that the filters leave, all columns, raw numbers; RFC 4180.
(() => {
  const button = document.getElementById("csv");
  const { list } = lens;
  if (!button || !list) return;
  const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/;
  // A spreadsheet runs a text that begins like a formula: an apostrophe before it makes it a text again.
  const guarded = (text) => (/^[=+\-@\t\r]/.test(text) && !NUMBER.test(text) ? `'${text}` : text);
  // Nor does anything in it steer a terminal or an editor.
  const STEERING = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
  const harmless = (text) => text.replace(STEERING, "?");
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const cell = (text) => quoted(harmless(guarded(text.replaceAll("\u00a0", " ").trim())));

  // Long names are cut in the list; the card has them whole.
  const whole = (row) => lens.cards.get(row.dataset.k)?.querySelector(".full-name")?.textContent;
  function values(row) {
    const cells = [...row.cells].flatMap((data, column) => {
      const also = list.heads[column].dataset.also ? [data.dataset.also ?? data.dataset.order] : [];
      return [...also, data.dataset.order];
    });
    return [(cells[0].includes("\u2026") && whole(row)) || cells[0], ...cells.slice(1)];
  }
  button.addEventListener("click", () => {
    list.complete();
    const headings = list.heads.flatMap((head) => [...(head.dataset.also ? [head.dataset.also] : []), head.dataset.csv]);
    const left = list.table.rows({ order: "current", search: "applied" }).nodes().toArray();
    const text = [headings, ...left.map(values)].map((line) => `${line.map(cell).join(",")}\r\n`).join("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    link.download = lens.fileName("kernels.csv");
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
})();
