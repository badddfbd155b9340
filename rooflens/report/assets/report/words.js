// What the text filter looks through beside a launch's own words: its line in the list or below a row, all columns.
lens.words = () => {
  const words = new Map();
  const add = (key, text) => words.set(key, `${words.get(key) || ""} ${text}`);
  for (const row of lens.list?.rows || []) add(row.dataset.k, row.textContent);
  for (const [key, text] of lens.list?.waitingWords() || []) add(key, text);
  const waiting = [...document.querySelectorAll("#cards noscript.lines")].map((piece) => piece.textContent);
  const parsed = new DOMParser().parseFromString(waiting.join(""), "text/html");
  for (const page of [document, parsed]) {
    for (const line of page.querySelectorAll(".launches tr[data-k]")) add(line.dataset.k, line.textContent);
  }
  return words;
};
