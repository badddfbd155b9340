"""Measure the viewer in Chromium: bytes loaded, time until it can read, time and memory for reports of several sizes.

    python benchmarks/viewer.py [--folder out/viewer] [--runs 3]

Without a folder the viewer is built first, for which npm and pip need their registries. Each run is a browser of its
own with an empty cache. Printed are the median and, in brackets, the least and the most. The time of a report is from
its choice until page and text are there; memory is the most that the tab's process held at once, as Linux counts it.
Seconds are of this machine.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from report import ARGUMENTS, NAMES

from rooflens.cli.commands.viewer import server_of

if TYPE_CHECKING:
    from playwright.sync_api import Playwright

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED, CORPUS = ROOT / "fixtures" / "published", ROOT.parent / "shared" / "corpus"
REPORTS = (
    "KernelBench__matmul_kernel",
    "cuda_learning_mojo__profile",
    "speedy_scan__profile",
    "GPU_workshop__MW_Baseline",
    "IndexSpaces.jl__profile",
)
"""As they were published where there is a corpus, else as `fixtures` keeps them."""
MOST_MS = 300_000
NOT_HAD = 75


def main() -> int:
    """Build it if need be, measure, print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    options.add_argument("--folder", type=Path, help="a built viewer")
    options.add_argument("--runs", type=int, default=3)
    given = options.parse_args()
    chromium = next((path for name in NAMES if (path := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - an extra, which is missing in lean environments
    except ModuleNotFoundError:
        chromium = None
    if chromium is None:
        print("viewer: not measured, as there is no Chromium, or no playwright")
        return 0
    with tempfile.TemporaryDirectory() as made:
        folder = given.folder or Path(made) / "viewer"
        if given.folder is None:
            done = subprocess.run([sys.executable, str(ROOT / "viewer" / "build.py"), str(folder)], check=False)
            if done.returncode:
                print("viewer: not measured, as it could not be built")
                return 0 if done.returncode == NOT_HAD else 1
        seen: dict[str, list[float]] = defaultdict(list)
        with server_of(folder, 0) as server, sync_playwright() as driver:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            for _ in range(given.runs):
                for name, value in measured(driver, chromium, f"http://127.0.0.1:{server.server_port}/").items():
                    seen[name].append(value)
            server.shutdown()
    for name, values in seen.items():
        print(f"viewer: {name}: {median(values):.1f} ({min(values):.1f} to {max(values):.1f})")
    return 0


def measured(driver: Playwright, chromium: str, address: str) -> dict[str, float]:
    """Open the viewer in a new browser, give it each report in turn, and return what that took."""
    found: dict[str, float] = {}
    browser = driver.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
    page = browser.new_page()
    page.set_default_timeout(MOST_MS)
    loaded: list[int] = []
    page.context.on("requestfinished", lambda request: loaded.append(request.sizes()["responseBodySize"]))
    began = time.perf_counter()
    page.goto(address)
    page.locator("body[data-ready]").wait_for()
    found["ready, s"] = time.perf_counter() - began
    found["loaded, MB"] = sum(loaded) / 1e6
    found["memory when ready, MB"] = most_held() / 1e6
    for name in REPORTS:
        file = next(one for one in (CORPUS / f"{name}.ncu-rep", PUBLISHED / f"{name}.ncu-rep") if one.is_file())
        began = time.perf_counter()
        page.set_input_files("#files", file)
        page.locator("body[data-done]:has(#working[hidden])").wait_for(state="attached")
        if page.locator("#messages.failed").count():
            raise RuntimeError(page.locator("#messages").inner_text())
        found[f"{name}, {file.stat().st_size / 1e3:.0f} kB, s"] = time.perf_counter() - began
    found["memory after all, MB"] = most_held() / 1e6
    browser.close()
    return found


def most_held() -> int:
    """Return the most bytes that a tab's process below this one held at once; 0 where /proc does not tell."""
    parents: dict[int, int] = {}
    held: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            lines = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
            command = (place / "cmdline").read_bytes()
        except OSError:
            continue  # it ended meanwhile
        parents[int(place.name)] = int(lines["PPid"])
        if b"--type=renderer" in command and "VmHWM" in lines:
            held[int(place.name)] = int(lines["VmHWM"].split()[0]) * 1024
    return max((bytes_ for pid, bytes_ in held.items() if is_below_us(pid, parents)), default=0)


def is_below_us(pid: int, parents: dict[int, int]) -> bool:
    """Return whether a process descends from this one."""
    us = Path("/proc/self").resolve().name
    while pid in parents and str(pid) != us:
        pid = parents[pid]
    return str(pid) == us


if __name__ == "__main__":
    sys.exit(main())
