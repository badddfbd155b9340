"""The viewer in a browser: the package runs there unchanged, and nothing leaves the page's origin."""

from __future__ import annotations

import html
import http.server
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from support.printing import printed
from support.traces import kernel, write_trace

from rooflens.cli.commands.viewer import _server
from rooflens.cli.group import main

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "fixtures" / "published"
NAMES = (
    "ESMM-Research__metrics",
    "GPU_workshop__MW_Baseline",
    "Hyper-Spec-M__profile",
    "IndexSpaces.jl__profile",
    "KernelBench__matmul_kernel",
    "benchmark__attention.decode",
    "cutlass__384",
    "llm-perf-opt__kernel_0002",
    "llm.c__adamw_coalsecing_shared",
    "speedy_scan__profile",
)
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
    with _server(built, 0) as server:
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
    """Return what is opened, by kind: reports, a CSV export, a print, a trace, a report cut off."""
    folder = tmp_path_factory.mktemp("files")
    found = {name: PUBLISHED / f"{name}.ncu-rep" for name in (*NAMES, "GPU_workshop__MW_DivToMult")}
    export = "\n".join((",".join(COLUMNS), *(f"{LAUNCH},{metric}" for metric in METRICS)))
    found["export"] = folder / "export.csv"
    found["export"].write_text(export, encoding="utf-8")
    found["print"] = folder / "print.txt"
    found["print"].write_text(printed(export), encoding="utf-8")
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


def test_pages_texts_and_json_are_those_of_the_command_line(
    page: Page, files: dict[str, Path], native: Callable[..., str]
) -> None:
    """Of ten published reports, an export and a print: page, explanation and JSON are the native ones."""
    differ = []
    for name in (*NAMES, "export", "print"):
        file = files[name]
        open_files(page, file)
        made = saved(page, "#save")
        headline = page.frame_locator("iframe").locator("h1").text_content()
        assert headline == html.unescape(re.sub("<[^>]+>", "", made[made.index("<h1") : made.index("</h1>")])), name
        asked = {
            "page": (made, native("report", files=[file], output="page.html")),
            "text": (page.locator("#text").text_content(), native("explain", "--format", "md", files=[file])),
            "data": (saved(page, "#save-data"), native("analyze", "--format", "json", files=[file])),
        }
        differ += [f"{name}: {kind}" for kind, (here, there) in asked.items() if rounded(here) != rounded(there)]
    assert differ == []


def test_two_files_are_compared_and_several_are_one_report(
    page: Page, files: dict[str, Path], native: Callable[..., str]
) -> None:
    """MW's pair gives the page of `compare`, three files and a trace that of `report`, as natively."""
    pair = [files["GPU_workshop__MW_Baseline"], files["GPU_workshop__MW_DivToMult"]]
    several = [*pair, files["llm.c__adamw_coalsecing_shared"]]
    for command, given in (("compare", pair), ("report", several), ("report", [files["trace"]])):
        open_files(page, *given)
        assert saved(page, "#save") == native(command, files=given, output="page.html")


def test_pasted_text_is_read(page: Page, files: dict[str, Path]) -> None:
    """What ncu printed can be pasted."""
    page.reload()
    page.locator("body[data-ready]").wait_for()
    page.locator("summary").click()
    page.fill("#pasted", files["print"].read_text("utf-8"))
    page.locator("#paste button").click()
    page.frame_locator("iframe").locator("h1", has_text="saxpy").wait_for()


def test_an_error_is_worded_as_in_a_shell_and_the_next_file_works(page: Page, files: dict[str, Path]) -> None:
    """A damaged report ends in the message of the command line; the next one is drawn."""
    damaged = files["damaged"]
    open_files(page, damaged)
    command = [sys.executable, "-m", "rooflens", "report", damaged.name, "--format", "html", "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=damaged.parent)  # noqa: S603 - ours
    assert page.locator("#messages pre").text_content() == done.stderr.strip()
    assert "truncated" in done.stderr
    open_files(page, files[NAMES[1]])
    assert page.locator("#messages").is_hidden()
    assert page.frame_locator("iframe").locator("h1").text_content()


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
