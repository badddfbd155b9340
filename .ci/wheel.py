"""Build what is released, and try it as its users get it: `.venv/bin/python .ci/wheel.py dist [--tag v0.1.0]`.

With `--only-try` the wheel that is in the folder already is tried, on this system and with this Python.

The wheel must hold what git holds of the package and nothing else, its version must be the tag's and have an entry in
the changelog, its description must render, and its commands must work in an environment that holds nothing but it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
REPORTS = REPOSITORY / "fixtures" / "published"
REPORT, OTHER = str(REPORTS / "GPU_workshop__MW_Baseline.ncu-rep"), str(REPORTS / "GPU_workshop__MW_DivToMult.ncu-rep")
TRIED = (
    ("doctor",),
    ("report", REPORT, "-o", "page.html"),
    ("analyze", REPORT),
    ("analyze", REPORT, "--reader", "ncu-report"),
    ("explain", REPORT),
    ("hotspots", REPORT),
    ("compare", REPORT, OTHER),
    ("ingest", REPORT, OTHER, "--store", "store", "--executor", "process:2"),
    ("analyze", "--store", "store"),
    ("metrics", "--chip", "gh100"),
    ("workloads",),
    ("skill",),
    ("predict", "gemm", "--m", "4096", "--n", "4096", "--k", "4096"),
)


def main() -> None:
    """Build, compare, try; the first thing that is wrong ends it."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    options.add_argument("folder", type=Path, help="where wheel and source archive go")
    options.add_argument("--tag", default="", help="the tag that is released, as v0.1.0")
    options.add_argument("--only-try", action="store_true", help="build nothing: try the wheel that is in the folder")
    given = options.parse_args()
    if given.only_try:
        (wheel,) = given.folder.glob("rooflens-*.whl")
        try_alone(wheel.resolve())
        return
    wheel, archive = build(given.folder)
    compare(wheel)
    version = wheel.name.split("-")[1]
    check_version(version, given.tag)
    run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(archive))
    try_alone(wheel)
    print(f"{wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB) and {archive.name} can be released")


def build(folder: Path) -> tuple[Path, Path]:
    """Build wheel and source archive into a folder that holds no older ones."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("rooflens-*.whl"), *folder.glob("rooflens-*.tar.gz")):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", str(folder), str(REPOSITORY))
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel.resolve(), archive.resolve()


def compare(wheel: Path) -> None:
    """Refuse a wheel that lacks a file of the package, or holds one that git does not know."""
    tracked = set(run("git", "ls-files", "rooflens", into=REPOSITORY).split())
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if not name.partition("/")[0].endswith(".dist-info")}
    if tracked != packed:
        sys.exit(f"missing in the wheel: {sorted(tracked - packed)}\nunknown to git: {sorted(packed - tracked)}")


def check_version(version: str, tag: str) -> None:
    """Refuse a tag of another version, and a version without an entry in the changelog."""
    if tag and tag != f"v{version}":
        sys.exit(f"the tag is {tag}, the version {version}")
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    if tag and not re.search(rf"^## {re.escape(version)}\b", changelog, re.MULTILINE):
        sys.exit(f"CHANGELOG.md has no entry for {version}")


def try_alone(wheel: Path) -> None:
    """Install the wheel where nothing else is, print what that takes, and run commands that need no GPU."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "env"
        venv.create(place, with_pip=True)
        programs = place / ("Scripts" if sys.platform == "win32" else "bin")
        before, began = size_of(place), time.perf_counter()
        install = ("-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check")
        run(str(programs / "python"), *install, str(wheel))
        took = time.perf_counter() - began
        print(f"installed in {took:.0f} s: {(size_of(place) - before) / 1e6:.0f} MB with what it needs")
        for words in TRIED:
            began = time.perf_counter()
            run(str(programs / "rooflens"), *words, into=Path(folder))
            print(f"rooflens {' '.join(Path(word).name for word in words)}: {time.perf_counter() - began:.1f} s")


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def run(*words: str, into: Path | None = None) -> str:
    """Run a program away from the checkout, and return what it printed; end where it fails, with its words."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        words, cwd=into, env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
