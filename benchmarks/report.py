"""Build pages of 10 to 100,000 launches, measure them, and open them in Chromium: pages must not grow with launches.

Run with `make bench`. The launches are copies of the stored synthetic reports' kernels under other names, so that each
has as much content as a recorded one. Everything runs in turn on this machine: quote the ratios, not the seconds.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rooflens.analyzing import analyze_paths
from rooflens.model.records import AnalyzedReport
from rooflens.report.page.page import render_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playwright.sync_api import Browser

    from rooflens.model.records import Analysis, Run

REPORTS = Path(__file__).parent.parent / "fixtures" / "synthetic"

SIZES = ((10, 10), (1_000, 400), (100_000, 400), (100_000, 100_000))
"""Launches, and kernels that they are of."""

LIMIT_BYTES = 3e6
LIMIT_S = 2.0
OPENINGS = 3

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")

PAINTED = """window.painted = new Promise((resolve) => {
  new MutationObserver((changes, observer) => {
    if (!document.querySelector(".chart[data-drawn] svg")) return;
    observer.disconnect();
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => resolve(performance.now());
      port2.postMessage(null);
    });
  }).observe(document, { subtree: true, attributeFilter: ["data-drawn"] });
});"""
"""Tells by the page's own clock, from the start of loading, when the frame with its first whole chart was painted: a
message that is sent while a frame is made comes after it."""


class Cost(Struct, frozen=True):
    """The cost of one page; `first_chart_s` is None without a browser."""

    launches: int
    kernels: int
    build_s: float
    page_bytes: int
    first_chart_s: float | None


def main() -> None:
    """Print the cost of each size, and ratios between them."""
    reports = analyze_paths([REPORTS]).reports
    base = [analysis for report in reports for analysis in report.analyses]
    render_page(reports, title="warm-up")
    with tempfile.TemporaryDirectory() as folder:
        pages = [
            (size, *build(reports[0].run, crowd(base, *size), Path(folder) / f"{i}.html"))
            for i, size in enumerate(SIZES)
        ]
        opened = list(openings([path for _, _, path in pages]))
        costs = [
            Cost(*size, seconds, path.stat().st_size, first_s)
            for (size, seconds, path), first_s in zip(pages, opened, strict=True)
        ]
    show(costs)


def crowd(base: Sequence[Analysis], launches: int, kernels: int) -> list[Analysis]:
    """Make launches of this many kernels; every other launch of a kernel behaves like another kernel."""
    return [renamed(base[(i % kernels + i // kernels % 2) % len(base)], i % kernels) for i in range(launches)]


def renamed(analysis: Analysis, number: int) -> Analysis:
    """Make the same launch of another kernel on one GPU."""
    name = f"void at::native::vectorized_elementwise_kernel<4, Functor<float, {number}>, std::array<char*, 2ul> >"
    return replace(analysis, kernel=replace(analysis.kernel, name=name, gpu="NVIDIA H100 80GB HBM3"))


def build(run: Run, analyses: Sequence[Analysis], path: Path) -> tuple[float, Path]:
    """Render one page and write it; return the seconds of the first time."""
    start = time.perf_counter()
    html = render_page([AnalyzedReport(run, tuple(analyses))], title="benchmark")
    seconds = time.perf_counter() - start
    path.write_text(html, encoding="utf-8")
    return seconds, path


def openings(paths: Sequence[Path]) -> Iterator[float | None]:
    """Open each page several times; return the median seconds from the start of loading to its first visible chart."""
    found = os.environ.get("ROOFLENS_CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - a part of the test extra
    except ImportError:
        found = None
    if not found:
        print("time to first chart: skipped, no Chromium or no playwright on this machine\n")
        yield from [None] * len(paths)
        return
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        # In turn, so that other load on this machine slows none of them alone.
        rounds = [[painted_s(browser, path) for path in paths] for _ in range(OPENINGS)]
        browser.close()
    yield from map(statistics.median, zip(*rounds, strict=True))


def painted_s(browser: Browser, path: Path) -> float:
    """Open a page; return the seconds by its own clock until its first chart is seen."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.add_init_script(PAINTED)
    page.goto(path.as_uri(), wait_until="commit")
    milliseconds: float = page.evaluate("window.painted")
    page.close()
    return milliseconds / 1e3


def show(costs: Sequence[Cost]) -> None:
    """Print one line per page, then the ratios of 100,000 launches over 1,000."""
    print(f"{'launches':>9} {'kernels':>9} {'build':>9} {'page':>9} {'first chart':>12}")
    for cost in costs:
        first = "-" if cost.first_chart_s is None else f"{cost.first_chart_s:.2f} s"
        print(f"{cost.launches:9,} {cost.kernels:9,} {cost.build_s:7.2f} s {cost.page_bytes / 1e6:6.2f} MB {first:>12}")
    small, large, names = costs[1:]
    print(f"\nlimits: page {LIMIT_BYTES / 1e6:g} MB, first chart {LIMIT_S:g} s")
    for title, cost in (("100,000 launches over 1,000", large), ("the same, all of other kernels", names)):
        ratios = [("build", cost.build_s / small.build_s), ("page", cost.page_bytes / small.page_bytes)]
        if cost.first_chart_s and small.first_chart_s:
            ratios.append(("first chart", cost.first_chart_s / small.first_chart_s))
        print(f"{title:<31} {', '.join(f'{name} {ratio:.2f}x' for name, ratio in ratios)}")


if __name__ == "__main__":
    main()
