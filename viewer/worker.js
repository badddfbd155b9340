// Runs rooflens under Pyodide. Nothing is fetched but what lies beside this file; a report comes as a message and stays here.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const beside = (name) => new URL(name, import.meta.url);

async function fetched(name) {
  const response = await fetch(beside(name));
  if (!response.ok) throw new Error(`${name} is missing beside this page (${response.status})`);
  return response;
}

const lastLine = (error) => String(error).trim().split("\n").at(-1);
const tell = (step, share) => postMessage({ kind: "progress", step, share });

async function start() {
  tell("Loading Python", 0.05);
  const { wheels } = await (await fetched("manifest.json")).json();
  const arriving = wheels.map((name) => fetched(`wheels/${name}`).then((response) => response.arrayBuffer()));
  const env = { HOME: "/home", PYTHON_CPU_COUNT: "1" }; // a worker has no processes
  const pyodide = await loadPyodide({ indexURL: beside("pyodide/").href, env });
  const site = pyodide.runPython("import sysconfig; sysconfig.get_path('purelib')");
  for (const [number, wheel] of arriving.entries()) {
    tell("Unpacking packages", 0.4 + (0.4 * number) / wheels.length);
    pyodide.unpackArchive(await wheel, "wheel", { extractDir: site });
  }
  tell("Starting rooflens", 0.85);
  for (const name of ["rpds.py", "answering.py"]) pyodide.FS.writeFile(`${site}/${name}`, await (await fetched(name)).text());
  pyodide.runPython("import answering, altair, rooflens.cli.group");
  return pyodide;
}

const started = start();
started.then(() => postMessage({ kind: "ready" }), (error) => postMessage({ kind: "crashed", message: lastLine(error) }));

let paths;

addEventListener("message", async ({ data: asked }) => {
  try {
    const answering = (await started).pyimport("answering");
    const answer = (kind) => {
      const tuple = answering[kind](paths);
      const [status, text, messages] = tuple.toJs();
      tuple.destroy();
      postMessage({ kind, status, text, messages, number: asked.number });
      return status;
    };
    if (asked.files) {
      paths?.destroy();
      const files = (await started).toPy(asked.files);
      paths = answering.place(files);
      files.destroy();
      tell(paths.length === 2 ? "Comparing" : "Reading, and drawing the page", 0.9);
    }
    for (const kind of asked.kinds) if (answer(kind)) break;
    postMessage({ kind: "done", number: asked.number });
  } catch (error) {
    postMessage({ kind: "crashed", message: lastLine(error), number: asked.number });
  }
});
