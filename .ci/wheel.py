"""Build what is released, and try it as its users get it: `.venv/bin/python .ci/wheel.py dist [--tag v0.1.0]`.

With `--only-try` the existing wheel in the folder is tried, on this system and with this Python.

The wheel must contain exactly git's files of the package, and the archive nothing that git does not track. Both must
be reproduced byte for byte from a copy of the files. The description must render, and the commands must work in an
environment with only the wheel. With a tag, it must be the version's, which has its date in the changelog, and the
project's address must be known.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
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
    """Build, compare, try; the first failure ends it."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    options.add_argument("folder", type=Path, help="where wheel and source archive go")
    options.add_argument("--tag", default="", help="the tag that is released, as v0.1.0")
    options.add_argument("--only-try", action="store_true", help="build nothing: try the wheel that is in the folder")
    given = options.parse_args()
    if given.only_try:
        (wheel,) = given.folder.glob("rooflens-*.whl")
        try_alone(wheel.resolve())
        return
    wheel, archive = build(REPOSITORY, given.folder)
    compare(wheel, archive)
    build_again(wheel, archive)
    version = wheel.name.split("-")[1]
    if given.tag:
        check_release(version, given.tag)
    run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(archive))
    try_alone(wheel)
    print(f"{wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB) and {archive.name} can be released")


def build(source: Path, folder: Path) -> tuple[Path, Path]:
    """Build wheel and source archive into a folder without older ones."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("rooflens-*.whl"), *folder.glob("rooflens-*.tar.gz")):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", str(folder), str(source))
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel.resolve(), archive.resolve()


def build_again(*built: Path) -> None:
    """Refuse a difference when built from a copy of git's files in another folder, with other times and modes."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        for name in run("git", "ls-files", "-z", into=REPOSITORY).rstrip("\0").split("\0"):
            place = copy / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPOSITORY / name, place, follow_symlinks=False)
            if not place.is_symlink():
                place.chmod(0o700 if os.access(REPOSITORY / name, os.X_OK) else 0o600)
                os.utime(place, (1e9, 1e9))
        others = build(copy, Path(folder) / "dist")
        different = [
            one.name for one, other in zip(built, others, strict=True) if one.read_bytes() != other.read_bytes()
        ]
    if different:
        sys.exit(f"not reproducible: {' and '.join(different)} came out otherwise from a copy of the files")
    for one in built:
        print(f"{one.name}: sha256 {hashlib.sha256(one.read_bytes()).hexdigest()}, the same from a copy of the files")


def compare(wheel: Path, archive: Path) -> None:
    """Refuse a wheel that lacks a file of the package, and either if it contains files that git does not track."""
    tracked = set(run("git", "ls-files", "rooflens", into=REPOSITORY).split())
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if not name.partition("/")[0].endswith(".dist-info")}
    if tracked != packed:
        sys.exit(f"missing in the wheel: {sorted(tracked - packed)}\nunknown to git: {sorted(packed - tracked)}")
    with tarfile.open(archive) as opened:
        archived = {name.partition("/")[2] for name in opened.getnames()} - {"PKG-INFO"}
    if unknown := archived - set(run("git", "ls-files", into=REPOSITORY).splitlines()):
        sys.exit(f"in the archive and unknown to git: {sorted(unknown)}")


def check_release(version: str, tag: str) -> None:
    """Refuse a tag of another version, a version without a date in the changelog, and a project without an address."""
    if tag != f"v{version}":
        sys.exit(f"the tag is {tag}, the version {version}")
    run(sys.executable, str(REPOSITORY / "packaging/release_check.py"), into=REPOSITORY)


def try_alone(wheel: Path) -> None:
    """Install the wheel in an empty environment, print its size, and run commands that need no GPU."""
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
    """Run a program outside the checkout and return its output; if it fails, exit with its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        words, cwd=into, env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
