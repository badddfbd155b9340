"""The least that answers: what each command does where only a few packages are installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.packing import pack
from support.traces import kernel, write_trace

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "fixtures" / "published"
INSTALL = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
KERNEL = "semi_discrete_step_232_gpu"
REPORT, OTHER = "GPU_workshop__MW_Baseline.ncu-rep", "GPU_workshop__MW_DivToMult.ncu-rep"

ANSWERED = (
    "analyze {report}",
    "analyze {report} --format json",
    "analyze {report} --format csv",
    "analyze {trace}",
    "explain {report}",
    "hotspots {report}",
    "compare {report} {other}",
    "compare {report} {other} --format json",
    "annotate {trace} {report} -o annotated.json",
    "share {report} -o shared.ncu-rep",
    "predict --from {report} --gpu h100-sxm",
    "predict gemm --m 4096 --n 4096 --k 4096",
    "about L1",
    "gpus",
    "workloads",
    "skill",
    "completion bash",
)
"""With the least."""
DRAWN = ("report {report} -o page.html", "compare {report} {other} -o pair.html", "report {trace} -o trace.html")
"""With Altair, too."""
LACKING = {
    "ingest {report} --store store": "pyarrow",
    "analyze --store store": "pyarrow",
    "metrics --report {report}": "pyarrow",
    "analyze s3://bucket/a.ncu-rep": "pyarrow",
    "metrics --chip gh100": "ncu-report",
    "mcp": "mcp",
}
"""What the others lack, and name in one line."""
PICTURE = "report {report} -o page.svg"


def installed_with(folder: Path, names: list[str], *, with_needs: bool) -> Path:
    """Make an environment that has rooflens and these packages of this one, and nothing else; return its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "rooflens").symlink_to(ROOT / "rooflens")
    left, placed = list(names), set()
    while left:
        name = canonicalize_name(left.pop())
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            continue  # for another platform
        if name in placed:
            continue
        placed.add(name)
        for top in {Path(file).parts[0] for file in files} - {"..", "__pycache__"}:
            source = Path(str(distribution(name).locate_file(top)))
            if not (site / top).exists():
                (site / top).symlink_to(source)
        if with_needs:
            needed = map(Requirement, requires(name) or ())
            left += [one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]
    return folder / "bin" / "python"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Return a report, another, a compressed one and a trace, by the words of the command lines."""
    trace = write_trace(tmp_path / "trace.json", [kernel(KERNEL, 10.0, grid=[65535, 1, 1])])
    packed = pack(PUBLISHED / REPORT, tmp_path / "packed.ncu-repz")
    return {
        "report": str(PUBLISHED / REPORT),
        "other": str(PUBLISHED / OTHER),
        "packed": str(packed),
        "trace": str(trace),
    }


def asked(python: Path, line: str, files: dict[str, str], folder: Path) -> tuple[int, str, str]:
    """Run a command line; return its exit status, what it printed, and its messages."""
    words = [word.format(**files) for word in line.split()]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(python), "-m", "rooflens", "--isolated", *words]
    done = subprocess.run(  # noqa: S603 - ours
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return done.returncode, done.stdout, done.stderr


def said_to_be_least() -> list[str]:
    """Return the packages that the documentation says are enough."""
    (line,) = re.findall(r"^pip install (click [a-z ]+)$", INSTALL, re.MULTILINE)
    return str(line).split()


def is_named(package: str, end: tuple[int, str, str]) -> bool:
    """Return whether a command ended with one error, and a hint that installs this package."""
    lines = end[2].splitlines()
    if end[0] != 3 or len(lines) != 3:
        return False
    error, blank, hint = lines
    return error.startswith("error: ") and not blank and "pip install" in hint and package in hint


@pytest.mark.skipif(sys.platform == "win32", reason="environments are made of links")
def test_the_documented_least_answers_and_altair_draws(tmp_path: Path, files: dict[str, str]) -> None:
    """With the packages that are documented as the least, each command answers or names in one line what it lacks."""
    least = installed_with(tmp_path / "least", said_to_be_least(), with_needs=False)
    ends = {line: asked(least, line, files, tmp_path) for line in (*ANSWERED, *LACKING, *DRAWN)}
    lacking = LACKING | dict.fromkeys(DRAWN, "altair")
    if sys.version_info < (3, 14):
        ends["analyze {packed}"] = asked(least, "analyze {packed}", files, tmp_path)
        lacking["analyze {packed}"] = "pyarrow"
    wrong = [(line, ends[line]) for line in ANSWERED if ends[line][0] != 0]
    wrong += [(line, ends[line]) for line, package in lacking.items() if not is_named(package, ends[line])]
    assert wrong == []
    # What they say is what they say where all is installed.
    for line in ("explain {report}", "hotspots {report}", "compare {report} {other}", "analyze {report} --format json"):
        assert asked(Path(sys.executable), line, files, tmp_path)[:2] == ends[line][:2], line
    drawing = installed_with(tmp_path / "drawing", [*said_to_be_least(), "altair"], with_needs=True)
    assert [(line, end) for line in DRAWN if (end := asked(drawing, line, files, tmp_path))[0] != 0] == []
    assert is_named("vl-convert-python", asked(drawing, PICTURE, files, tmp_path))
