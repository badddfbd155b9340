"""Every number in the README is checked against what it counts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

from support.loops import for_all

from rooflens import errors
from rooflens.ingest.reports.read import ReadOptions, read_report
from rooflens.model.records import LEVELS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SPELT = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|eighteen"
NUMBER = rf"(?<![\w.,-])(?:\d+(?:\.\d+)?|{SPELT})(?![\w]|\.\d)"


def _told() -> str:
    """Return the README's own words: prose, and comments on commands; outputs are checked by other tests."""
    comments = "\n".join(re.findall(r"^[^\n#]*#([^\n]*)", "\n".join(_blocks()), flags=re.MULTILINE))
    prose = re.sub(r"^```.*?^```", "", README, flags=re.DOTALL | re.MULTILINE)
    return " ".join(f"{prose}\n{comments}".split())


def _blocks() -> list[str]:
    return re.findall(r"^```sh[^\n]*\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


@cache
def _gpus() -> int:
    reports = (path for path in (ROOT / "fixtures").glob("*/*.ncu-rep") if path.parent.name != "synthetic")
    kernels = (one for path in reports for one in read_report(path, str(path), ReadOptions(texts=False)).kernels)
    return len({kernel.gpu for kernel in kernels} - {None})


def _accuracy() -> int:
    text = (ROOT / "docs/explanation/accuracy.md").read_text(encoding="utf-8")
    (reports,) = re.findall(r"reads (\d+) public Nsight Compute reports", text)
    return int(reports)


def _exit_codes() -> list[int]:
    kinds = (errors.InputError, errors.UsageError, errors.EnvironmentMissingError, errors.ProgramError)
    return [0, *(kind.exit_code for kind in kinds), errors.GateFailedError.exit_code]


def _lines_of_pytest() -> int:
    text = (ROOT / "docs/how-to/ci.md").read_text(encoding="utf-8")
    (block,) = (
        one for one in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE) if "def test_" in one
    )
    return len([line for line in block.splitlines() if line.strip()])


def _python() -> str:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    return str(needed).removeprefix(">=")


COUNTED: tuple[tuple[str, Callable[[], str]], ...] = (
    ("Python {} or newer", _python),
    ("{} memory levels", lambda: {4: "four"}[len(LEVELS)]),
    ("NVIDIA's own in {} published reports", lambda: str(_accuracy())),
    ("out/gpus.html of {} GPUs", lambda: str(_gpus())),
    ("{} lines of pytest", lambda: {6: "six", 7: "seven"}[_lines_of_pytest()]),
    (
        "Exit codes: {}",
        lambda: (
            "{} fine, {} bad input, {} usage, {} something is missing here, {} the profiled program failed, "
            "{} a gate failed".format(*_exit_codes())
        ),
    ),
)
"""Sentence in the README -> function that counts what it states."""
OTHERS = ("ncu 2019 to today", "have held since 2020", "--fail-on 5%", "Apache-2.0", "a minute or two")
"""Numbers that count nothing of ours: years, an example, a name, and obvious ones."""


@for_all("said, counted", COUNTED, lambda case: case[0])
def test_what_the_readme_counts_is_so_many(said: str, counted: Callable[[], str]) -> None:
    """Each sentence with a number agrees with the counted number."""
    assert said.format(counted()) in _told()


def test_no_number_of_the_readme_is_held_by_nothing() -> None:
    """Each number in the README has a function that counts it."""
    left = _told()
    for known in (*(said.format(counted()) for said, counted in COUNTED), *OTHERS):
        left = left.replace(known, "")
    assert [left[max(0, m.start() - 30) : m.end() + 30] for m in re.finditer(NUMBER, left)] == []
