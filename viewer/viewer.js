// Hands files to the worker, and shows what comes back. A worker can be ended at any time: the next one starts at once.
const $ = (id) => document.getElementById(id);
const SECTIONS = ["empty", "working", "text", "frames"];
// What had the focus goes with its section: it moves to the next thing to press.
const NEXT = { empty: "#files", working: "#cancel", text: "[data-view=text]", frames: "[data-view=page]" };

let worker, opened, number = 0, waiting;

function start() {
  worker?.terminate();
  // Made of a blob, the worker inherits this page's policy; a worker from a file has its own, which a static host does not send.
  const code = `import ${JSON.stringify(new URL("worker.js", location.href).href)};`;
  const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  worker = new Worker(address, { type: "module" });
  worker.onmessage = ({ data }) => hear(data);
  worker.onerror = (event) => hear({ kind: "crashed", message: event.message || "it could not be loaded", number });
  $("ready").textContent = "Loading Python …";
}

function hear(answer) {
  if (answer.number !== undefined && answer.number !== number) return; // of files that nobody waits for any more
  if (answer.kind === "progress") {
    $("step").textContent = answer.step;
    document.querySelector("progress").value = answer.share;
  } else if (answer.kind === "ready") {
    $("ready").textContent = "Ready.";
    document.body.dataset.ready = "yes";
  } else if (answer.kind === "crashed") {
    delete document.body.dataset.ready;
    const kind = waiting ? "the reader ended" : "the viewer could not start";
    fail(`error: ${kind}: ${answer.message}\n\nhint: ${waiting ? "it was started anew: open another file" : "load this page again"}`);
    if (waiting) start();
    waiting = undefined;
    document.body.dataset.done = number;
  } else if (answer.kind === "done") {
    waiting = undefined;
    document.body.dataset.done = number;
  } else if (answer.kind === "page") {
    if (!answer.text) return fail(answer.messages);
    tell(answer.messages, answer.status !== 0);
    opened.page = answer.text;
    draw(answer.text);
    $("views").hidden = $("saves").hidden = false;
    view("page"); // last, for what is hidden takes no focus
  } else if (answer.kind === "text") {
    $("text").textContent = answer.text || answer.messages;
  } else if (answer.kind === "data") {
    answer.status ? tell(answer.messages, true) : save(answer.text, "json", "application/json");
  }
}

function ask(message) {
  waiting = message;
  number += 1;
  delete document.body.dataset.done;
  worker.postMessage({ ...message, number });
}

async function open(files) {
  if (!files.length) return;
  if (waiting) start();
  delete document.body.dataset.done;
  opened = { name: files.map(({ name }) => name).join(", ") };
  $("name").textContent = $("name").title = opened.name;
  $("text").textContent = "";
  tell("");
  show("working");
  $("views").hidden = $("saves").hidden = true;
  $("again").hidden = true;
  if (!document.body.dataset.ready) $("step").textContent ||= "Loading Python";
  else $("step").textContent = "Reading";
  const read = await Promise.all(files.map(async (file) => [file.name, new Uint8Array(await file.arrayBuffer())]));
  ask({ files: read, kinds: ["page", "text"] });
}

function draw(html) {
  const frame = document.createElement("iframe");
  frame.title = "The page of the report";
  frame.sandbox = "allow-scripts allow-downloads allow-modals";
  frame.allow = "clipboard-write";
  frame.addEventListener("load", () => frame.contentWindow.postMessage(html, "*"), { once: true });
  frame.src = "frame.html";
  $("frames").replaceChildren(frame);
}

function show(wanted) {
  for (const id of SECTIONS) $(id).hidden = id !== wanted;
  $("again").hidden = wanted === "empty" || wanted === "working";
  document.querySelector(NEXT[wanted]).focus({ preventScroll: true });
}

function view(name) {
  show(name === "page" ? "frames" : "text");
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", button.dataset.view === name);
}

function tell(words, failed = false) {
  $("messages").hidden = !words.trim();
  $("messages").classList.toggle("failed", failed);
  $("messages").firstElementChild.textContent = words.trim();
}

function fail(words) {
  tell(words, true);
  show("empty");
}

function save(text, ending, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = `${opened.name.split(", ")[0].replace(/\.(ncu-repz?|csv|txt|json)(\.gz)?$/, "")}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

$("files").addEventListener("change", ({ target }) => {
  const files = [...target.files];
  target.value = "";
  open(files);
});
$("paste").addEventListener("submit", (event) => {
  event.preventDefault();
  open([new File([$("pasted").value], "pasted.txt")]);
});
$("cancel").addEventListener("click", () => {
  number += 1;
  waiting = undefined;
  delete document.body.dataset.ready;
  $("name").textContent = "";
  start();
  show("empty");
});
$("again").addEventListener("click", () => {
  tell("");
  $("name").textContent = "";
  $("views").hidden = $("saves").hidden = true;
  show("empty");
});
$("save").addEventListener("click", () => save(opened.page, "html", "text/html"));
$("save-data").addEventListener("click", () => !waiting && ask({ kinds: ["data"] }));
for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => view(button.dataset.view));

addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("over");
});
addEventListener("dragleave", (event) => event.relatedTarget || document.body.classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  open([...event.dataTransfer.files]);
});

async function openLinked(places) {
  const files = [];
  for (const place of places) {
    const address = new URL(place, location.href);
    if (address.origin !== location.origin) return fail("error: `?report=` names another place\n\nhint: only a file beside this page can be linked to");
    const response = await fetch(address).catch(() => undefined);
    if (!response?.ok) return fail(`error: there is no \`${place}\` beside this page`);
    files.push(new File([await response.blob()], address.pathname.split("/").at(-1)));
  }
  open(files);
}

start();
const linked = new URLSearchParams(location.search).getAll("report");
if (linked.length) openLinked(linked);
