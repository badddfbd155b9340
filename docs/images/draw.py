"""Draw the pictures of the documentation: `make pictures`.

One shows a forecast. Three show the page of a report and one a sweep: of recordings in `fixtures/` if there are any;
else three show published figures of a V100, and the sweep synthetic reports, and says so. The first screens show
published figures. If ROOFLENS_CORPUS names a folder of the originals, they are shown, with their source lines and the
loops of published kernels, as figures contain no machine code. Needs a Chromium, like the browser tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

HERE = Path(__file__).parent
FIXTURES = HERE.parent.parent / "fixtures"
PUBLISHED = "GPU_workshop__MW_Baseline.ncu-rep"
"""Five kernels of a weather model on a V100, published by the NCAR GPU workshop (CC0)."""
FIRST_SCREENS = (
    ("first_selfjoin", "self-join-MiSTIC__profile.ncu-rep", "MiSTIC, self-join"),
    ("first_weather", PUBLISHED, "Weather model, one step"),
    ("first_adamw", "llm.c__adamw_coalsecing_shared.ncu-rep", "llm.c, AdamW"),
    ("first_matmul", "KernelBench__matmul_kernel.ncu-rep", "KernelBench, matrix product"),
    ("first_frb", "IndexSpaces.jl__profile.ncu-rep", "IndexSpaces.jl, radio bursts"),
)
"""Picture, report and title of each first screen of docs/how-to/page.md, which names their sources and licences."""
LOOPS = (
    ("loops_convolution", "hpca-gpu-memory-profiling/variant3.ncu-rep", "Convolution, 11 x 11", "loop=2"),
    ("loops_untiled", "CudaCode__naive.ncu-rep", "A product without tiles", "loop=0"),
    ("loops_tiled", "Cuda_Gemm_Practice/gemm_v7_alter.ncu-rep", "A tiled product beside the library's", "k=k0&loop=0"),
    ("loops_attention", "v5_swizzle_D64_N2048_causal.ncu-rep", "Flash attention", "loop=2"),
    ("loops_life", "A5_TP_conway/kernel_profilebasic.ncu-rep", "Game of life", "loop=1"),
)
"""Picture, end of the report's path, title, and chosen loop of each kernel of docs/explanation/inside.md."""
SYNTHETIC = "synthetic"
WITHOUT_SOURCES = """() => document.querySelectorAll('.gutter').forEach((table) => {
  const words = [...table.querySelectorAll('tr[data-in] td > code')].map((code) => code.textContent);
  table.hidden = words.some((word) => word.endsWith(';'));
})"""
"""Hides lines of somebody's source, which the pictures of loops do without."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FORECAST = ["predict", "gemm", "--m", "4096", "--n", "4096", "--k", "4096", "--format", "html"]
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-lcd-text")


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: the reports on its page, and the part of the page to show.

    Attributes:
        reports: Empty for a forecast.
        shown: Selector of the part; empty for the first screen of the page.
        chosen: The choices in the address.
    """

    name: str
    title: str
    reports: tuple[Path, ...]
    shown: str = ""
    width_px: int = 1280
    height_px: int = 1500
    dark: bool = False
    scale: float = 1.5
    chosen: str = ""


def pictures() -> tuple[Picture, ...]:
    """List the pictures."""
    real, title = kernels()
    sweep = recorded("gemm.ncu-rep", "gemm.bf16_*.ncu-rep") or stored("sweep_gemm_*.synthetic.ncu-rep")
    return (
        Picture("page", title, real),
        Picture("page_dark", title, real, dark=True),
        Picture("card", title, real, shown=".card[open]", dark=True),
        Picture("sweep", "gemm in bf16, four sizes", sweep, shown="#sweeps", width_px=1360, height_px=1000),
        Picture("phone", title, real, width_px=390, height_px=1500),
        Picture("predict", "", (), height_px=900),
        *first_screens(),
        *loops(),
    )


def first_screens() -> Iterator[Picture]:
    """List pictures of published reports as seen without scrolling."""
    for name, file, title in FIRST_SCREENS:
        yield Picture(name, title, (published(file),), width_px=1440, height_px=900, scale=1)


def loops() -> Iterator[Picture]:
    """List pictures of kernels with a loop selected, for the available reports."""
    folder = os.environ.get("ROOFLENS_CORPUS")
    for name, end, title, chosen in LOOPS if folder else ():
        every = sorted(Path(folder or "").rglob(f"*{Path(end).name}"))
        found = [file for file in every if file.as_posix().endswith(end)]
        if found:
            yield Picture(name, title, (found[0],), width_px=1280, height_px=820, scale=1, chosen=chosen)


def kernels() -> tuple[tuple[Path, ...], str]:
    """Return the reports with kernels to show, preferring real ones, and a description of them."""
    if own := recorded("attention*.ncu-rep", "gemm_ladder*.ncu-rep", "decode_attention*.ncu-rep"):
        return own, "Attention, decoding and eight ways to multiply"
    return (published(PUBLISHED),), "Weather model, one step"


def published(file: str) -> Path:
    """Return a published report: the original if available, else its figures."""
    return Path(os.environ.get("ROOFLENS_CORPUS") or FIXTURES / "published") / file


def recorded(*patterns: str) -> tuple[Path, ...]:
    """Find reports that were recorded on a GPU."""
    found = (file for pattern in patterns for file in sorted(FIXTURES.glob(f"*/{pattern}")))
    return tuple(file for file in found if file.parent.name != SYNTHETIC)


def stored(pattern: str) -> tuple[Path, ...]:
    """Find the reports written by a generator."""
    return tuple(sorted((FIXTURES / SYNTHETIC).glob(pattern)))


def main() -> None:
    """Draw all pictures, or those with the given names, into this folder."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - the site reads the tables above without it

    found = os.environ.get("ROOFLENS_CHROMIUM") or next(
        (path for name in BROWSERS if (path := shutil.which(name))), None
    )
    if not found:
        sys.exit("error: no Chromium on this machine\n\nhint: install one, or set ROOFLENS_CHROMIUM")
    wanted = sys.argv[1:]
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        for picture in pictures():
            if not wanted or picture.name in wanted:
                draw(browser, picture, Path(folder) / f"{picture.name}.html")
        browser.close()


def draw(browser: Browser, picture: Picture, page_file: Path) -> None:
    """Write the page of one picture, open it and take the picture."""
    reports = [str(report) for report in picture.reports]
    asked = ["report", *reports, "--title", picture.title] if reports else FORECAST
    subprocess.run([sys.executable, "-m", "rooflens", *asked, "-o", str(page_file)], check=True)
    page = browser.new_page(
        viewport={"width": picture.width_px, "height": picture.height_px},
        color_scheme="dark" if picture.dark else "light",
        device_scale_factor=picture.scale,
    )
    page.goto(f"{page_file.as_uri()}#{picture.chosen}")
    page.evaluate("lens.settled()")
    if picture.chosen:
        page.evaluate(WITHOUT_SOURCES)
    target = HERE / f"{picture.name}.png"
    if picture.shown:
        page.add_style_tag(content=f"{picture.shown} {{ padding: 24px !important; border: 0 !important }}")
        page.evaluate("location.hash = document.querySelector('.ranking a, .card').hash || ''")
        page.evaluate("lens.settled()")
        page.keyboard.press("Escape")
        page.locator(picture.shown).first.screenshot(path=target)
    else:
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=target)
    page.close()
    shrink(target)
    print(f"wrote {target}")


def shrink(target: Path) -> None:
    """Write a picture with a palette, a third of its size, if Pillow is installed, which is not a dependency."""
    try:
        from PIL import Image  # noqa: PLC0415 (missing in most environments)
    except ImportError:
        return
    with Image.open(target) as picture:
        painted = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    painted.save(target, optimize=True)


if __name__ == "__main__":
    main()
