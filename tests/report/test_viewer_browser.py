"""The viewer in a browser: the package runs there unchanged, and nothing leaves the page's origin."""

from __future__ import annotations

import html
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsing import faults
from click.testing import CliRunner
from support.hostile import RAN, SCRIPTS
from support.ncu_rep_writer import KernelSpec, ReportSpec, encode_report
from support.packing import pack, packed
from support.printing import printed
from support.traces import kernel, write_trace

from rooflens.cli.commands.viewer import server_of
from rooflens.cli.group import main

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "fixtures" / "published"
CORPUS = Path(os.environ.get("ROOFLENS_CORPUS") or ROOT.parent / "shared" / "corpus")
NAMES = (
    "ESMM-Research__profile_output",
    "GPU_workshop__MW_Baseline",
    "Hyper-Spec-M__profile",
    "IndexSpaces.jl__profile",
    "KernelBench__matmul_kernel",
    "cudaCode__profile",
    "cuda_learning_mojo__profile",
    "llm.c__adamw_coalsecing_shared",
    "self-join-MiSTIC__profileHIGGS.out",
    "speedy_scan__profile",
)
"""Reports as they were published, 0.1 to 2 MB, where there is a corpus; else what `fixtures` keeps of them."""
COLUMNS = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value",
)  # fmt: skip
LAUNCH = '0,4711,a.out,127.0.0.1,saxpy,1,7,"(256, 1, 1)","(1024, 2, 1)",0,8.6'
METRICS = (
    "GPU Speed Of Light Throughput,Duration,us,28.13",
    "GPU Speed Of Light Throughput,DRAM Throughput,%,81.84",
    "GPU Speed Of Light Throughput,Compute (SM) Throughput,%,11.20",
    "GPU Speed Of Light Throughput,SM Frequency,Ghz,1.32",
    "Occupancy,Achieved Occupancy,%,71.20",
)
"""What `ncu --csv --page details` prints of a launch."""
RAW = (
    "ID,Kernel Name,Block Size,Grid Size,CC,gpu__time_duration.sum,dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ",,,,,us,%",
    '0,saxpy,"(256, 1, 1)","(1024, 2, 1)",8.6,28.13,81.84',
)
"""What `ncu --csv --page raw` prints."""

NOT_HAD = 75
MOST_MS = 120_000
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def built(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001 - no browser, no build
    """Build the viewer; skip the tests where its parts cannot be fetched."""
    folder = tmp_path_factory.mktemp("built") / "viewer"
    command = [sys.executable, str(ROOT / "viewer" / "build.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603 - ours
    if done.returncode == NOT_HAD:
        pytest.skip(f"the viewer cannot be built here: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    """Serve it as `rooflens viewer` does."""
    with server_of(built, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def context(browser: Browser, address: str) -> Iterator[BrowserContext]:
    """Open the browser; at the end, no request may have gone elsewhere."""
    context = browser.new_context()
    context.set_default_timeout(MOST_MS)
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    yield context
    context.close()
    assert any("pyodide.asm.wasm" in one for one in asked)
    assert [one for one in asked if not one.removeprefix("blob:").startswith(address)] == []


@pytest.fixture(scope="module")
def page(context: BrowserContext, address: str) -> Page:
    """Open the viewer, once for all tests, and wait until it can read."""
    page = context.new_page()
    page.goto(address)
    page.locator("body[data-ready]").wait_for()
    return page


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return what is opened, by kind: reports, CSV exports, prints, a trace; and what is hostile, or damaged."""
    folder = tmp_path_factory.mktemp("files")
    places = {name: (CORPUS / f"{name}.ncu-rep", PUBLISHED / f"{name}.ncu-rep") for name in NAMES}
    found = {name: next(place for place in both if place.is_file()) for name, both in places.items()}
    found |= {name: PUBLISHED / f"GPU_workshop__MW_{name}.ncu-rep" for name in ("Baseline", "DivToMult")}
    found["packed"] = pack(found["Baseline"], folder / "packed.ncu-repz")
    export = "\n".join((",".join(COLUMNS), *(f"{LAUNCH},{metric}" for metric in METRICS)))
    found["export"] = folder / "export.csv"
    found["export"].write_text(export, encoding="utf-8")
    found["print"] = folder / "print.txt"
    found["print"].write_text(printed(export), encoding="utf-8")
    found["raw export"] = folder / "raw.csv"
    found["raw export"].write_text("\n".join(RAW), encoding="utf-8")
    found["plain print"] = folder / "plain.txt"
    found["plain print"].write_text(printed(export, is_plain=True), encoding="utf-8")
    found["example"] = ROOT / "examples" / "step.synthetic.json"
    found["hostile name"] = folder / "hostile.ncu-rep"
    names = [KernelSpec(text, {"gpu__time_duration.sum": 1000.0}) for text in SCRIPTS]
    found["hostile name"].write_bytes(encode_report(ReportSpec(names)))
    found["bomb"] = folder / "bomb.ncu-repz"
    found["bomb"].write_bytes(packed(b"NVR\0" + bytes(100 << 20)))
    found["cut"] = folder / "cut.ncu-repz"
    found["cut"].write_bytes(found["packed"].read_bytes()[:3000])
    found["trace"] = write_trace(folder / "trace.json", [kernel("gemm", 10.0), kernel("gemm", 20.0)])
    found["damaged"] = folder / "damaged.ncu-rep"
    found["damaged"].write_bytes(found[NAMES[0]].read_bytes()[:3000])
    return found


@pytest.fixture
def native(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return what a command prints or writes natively of files, which lie in its working folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, files: list[Path], output: str = "") -> str:
        for file in files:
            shutil.copy(file, tmp_path)
        written = ["-o", output, "--force"] if output else []
        given = ["--isolated", *arguments, "--reader", "direct", *written, *(file.name for file in files)]
        done = CliRunner().invoke(main, given)
        assert done.exit_code == 0, done.stderr
        return (tmp_path / output).read_text("utf-8") if output else done.stdout

    return run


def open_files(page: Page, *files: Path) -> None:
    """Choose files, and wait until all is there, or an error."""
    page.set_input_files("#files", list(files))
    page.locator("body[data-done]:has(#working[hidden])").wait_for(state="attached")


def rounded(text: str | None) -> str:
    """Round numbers to 12 digits: `sum` of Python 3.12 and later, as in the browser, adds floats more exactly."""
    return re.sub(r"\d+\.\d+(e[+-]?\d+)?", lambda found: f"{float(found[0]):.12g}", text or "")


def saved(page: Page, button: str) -> str:
    """Press a button that saves, and return what it saved."""
    with page.expect_download() as waiting:
        page.click(button)
    return waiting.value.path().read_text("utf-8")


def differing(page: Page, native: Callable[..., str], given: list[Path], *commands: str) -> list[str]:
    """Open files, and name what is not as the command line gives it.

    Args:
        page: The viewer.
        native: Runs a command natively.
        given: The files, opened together.
        commands: What gives the page, the text and the JSON natively.
    """
    open_files(page, *given)
    made = saved(page, "#save")
    headline = page.frame_locator("iframe").locator("h1").text_content()
    assert headline == html.unescape(re.sub("<[^>]+>", "", made[made.index("<h1") : made.index("</h1>")])), given
    as_page, as_text, as_data = commands
    asked = {
        "page": (made, native(as_page, files=given, output="page.html")),
        "text": (page.locator("#text").text_content(), native(as_text, "--format", "md", files=given)),
        "data": (saved(page, "#save-data"), native(as_data, "--format", "json", files=given)),
    }
    names = ", ".join(file.name for file in given)
    return [f"{names}: {kind}" for kind, (here, there) in asked.items() if rounded(here) != rounded(there)]


def test_pages_texts_and_json_are_those_of_the_command_line(
    page: Page, files: dict[str, Path], native: Callable[..., str]
) -> None:
    """Of ten published reports, a compressed one, exports and prints, page, text and JSON are the native ones."""
    differ = []
    for name in (*NAMES, "packed", "export", "raw export", "print", "plain print"):
        differ += differing(page, native, [files[name]], "report", "explain", "analyze")
    assert differ == []


def test_two_files_are_compared_and_several_are_one_report(
    page: Page, files: dict[str, Path], native: Callable[..., str]
) -> None:
    """MW's pair gives page, text and JSON of `compare`; three files, and traces, those of `report` and `analyze`."""
    pair = [files["Baseline"], files["DivToMult"]]
    differ = differing(page, native, pair, "compare", "compare", "compare")
    for given in ([*pair, files["cudaCode__profile"]], [files["trace"]], [files["example"]]):
        differ += differing(page, native, given, "report", "analyze", "analyze")
    assert differ == []


def test_files_beside_the_page_are_opened_by_its_address(page: Page, address: str) -> None:
    """The linked examples are compared; a file of another place is not asked for, and one that is missing is named."""
    refused = {"https://example.org/a.ncu-rep": "names another place", "a.ncu-rep": "there is no `a.ncu-rep`"}
    for linked, words in refused.items():
        page.goto(f"{address}?report={linked}")
        page.locator("#messages pre", has_text=words).wait_for()
    page.goto(address)
    page.get_by_role("link", name="before and after").click()
    page.locator("body[data-done]:has(#working[hidden])").wait_for(state="attached")
    assert (
        page.locator("#name").text_content() == "GPU_workshop__MW_Baseline.ncu-rep, GPU_workshop__MW_DivToMult.ncu-rep"
    )
    page.frame_locator("iframe").locator("h1", has_text="faster").wait_for()


def test_pasted_text_is_read(page: Page, address: str, files: dict[str, Path]) -> None:
    """What ncu printed can be pasted."""
    page.goto(address)
    page.locator("body[data-ready]").wait_for()
    page.locator("summary").click()
    page.fill("#pasted", files["print"].read_text("utf-8"))
    page.locator("#paste button").click()
    page.frame_locator("iframe").locator("h1", has_text="saxpy").wait_for()


def test_an_error_is_worded_as_in_a_shell_and_the_next_file_works(page: Page, files: dict[str, Path]) -> None:
    """Damaged reports, and one that unpacks to too much, end in the message of the command line; the next is drawn."""
    for kind, word in (("damaged", "truncated"), ("bomb", "unpacks to more than"), ("cut", "damaged")):
        bad = files[kind]
        open_files(page, bad)
        command = [sys.executable, "-m", "rooflens", "report", bad.name, "--format", "html", "-o", "-"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=bad.parent)  # noqa: S603 - ours
        assert word in done.stderr
        told = (page.locator("#messages pre").text_content() or "").splitlines()
        # Of a cut file each library for zstd has its own words behind the last colon.
        assert told == done.stderr.strip().splitlines() or (kind == "cut" and word in told[0])
        open_files(page, files[NAMES[1]])
        assert page.locator("#messages.failed").count() == 0
        assert page.frame_locator("iframe").locator("h1").text_content()


def test_text_of_a_hostile_report_is_not_run(page: Page, files: dict[str, Path]) -> None:
    """Names of kernels with scripts in them are shown as text, in the page's frame and in the text."""
    open_files(page, files["hostile name"])
    page.locator("[data-view=text]").click()
    assert SCRIPTS[0].split()[0][:8] in (page.locator("#text").text_content() or "")
    frame = page.locator("iframe").element_handle().content_frame()
    assert frame is not None
    for place in (page, frame):
        assert place.evaluate(f"{RAN.partition('=')[0]} === undefined")


def test_keys_alone_lead_through_it_and_the_focus_is_never_lost(page: Page, files: dict[str, Path]) -> None:
    """After each step the focus is on the next thing to press: cancel, the page, its text, another file."""
    focus = "document.activeElement.id || document.activeElement.dataset.view"
    page.set_input_files("#files", files["cudaCode__profile"])
    page.locator("#working").wait_for()
    assert page.evaluate(focus) == "cancel"
    page.locator("body[data-done]:has(#working[hidden])").wait_for(state="attached")
    assert page.evaluate(focus) == "page"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert (page.evaluate(focus), page.locator("#text").is_visible()) == ("text", True)
    for wanted in ("save", "save-data", "again"):
        page.keyboard.press("Tab")
        assert page.evaluate(focus) == wanted
    page.keyboard.press("Space")
    assert (page.evaluate(focus), page.locator("#empty").is_visible()) == ("files", True)
    # Where a worker has had other browsers, Chromium shows no dialog: that Enter asks for one is what is held.
    ask = "(input) => input.addEventListener('click', (event) => { event.preventDefault(); input.dataset.asked = '' })"
    page.locator("#files").evaluate(ask)
    page.keyboard.press("Enter")
    page.locator("#files[data-asked]").wait_for(state="attached")


def test_no_state_has_a_fault_that_axe_finds(page: Page, files: dict[str, Path], axe: str) -> None:
    """Empty, working, page, text and error, light and dark, at 1440 and 390: nothing serious in the viewer's parts."""
    found = {}

    def look(state: str) -> None:
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                found[state, width, scheme] = faults(page, axe)
                wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert wide <= 0, (state, width)

    page.locator("summary").click()
    look("empty")
    page.locator("summary").click()
    page.set_input_files("#files", [files[name] for name in NAMES])
    page.locator("#working").wait_for()
    look("working")
    assert page.locator("#working").is_visible()
    page.locator("#cancel").click()
    open_files(page, files["cudaCode__profile"])
    look("page")
    page.locator("[data-view=text]").click()
    look("text")
    page.locator("#again").click()
    open_files(page, files["damaged"])
    look("error")
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(color_scheme="null")
    assert {state: some for state, some in found.items() if some} == {}


def test_reading_can_be_cancelled(page: Page, files: dict[str, Path]) -> None:
    """Cancel ends the worker, and the next file is read by another."""
    page.set_input_files("#files", [files[name] for name in NAMES])
    page.locator("#cancel").click()
    page.locator("#empty").wait_for()
    open_files(page, files[NAMES[1]])
    assert page.locator("#saves").is_visible()


def test_neither_the_page_nor_the_worker_nor_the_frame_can_reach_another_place(page: Page, address: str) -> None:
    """The policy of the page holds for all three: a request to another origin never leaves, and text is not run."""
    heard: list[str] = []

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        ask = "address => fetch(address, { mode: 'no-cors' }).then(() => 'left', () => 'refused')"
        # Not at once, for a browser's tools may evaluate what they like.
        run = """() => new Promise((done) => setTimeout(() => {
          try { done(new Function("return 'run'")()); } catch (error) { done(error.name); }
        }))"""
        places = (page, page.workers[0], page.locator("iframe").element_handle().content_frame())
        for place in places:
            assert place is not None
            for name in ("other", "own"):
                found = place.evaluate(
                    ask, f"http://127.0.0.1:{other.server_port}/{name}" if name == "other" else address
                )
                assert found == ("left" if name == "own" and place is not places[2] else "refused"), (place, name)
        for place in places:
            assert place.evaluate(run) == "EvalError"
        other.shutdown()
    assert heard == []
