"""The typed program runs, and what docs/reference/api.md describes exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import rooflens as rl

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def test_the_typed_program_runs(fixtures: Path) -> None:
    """The type-checked program finds the worst kernel, an empty gate and a forecast's regime."""
    report = fixtures / "synthetic" / "attention.synthetic.ncu-rep"
    argv = [sys.executable, str(HERE / "client.py"), str(report)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.stderr == ""
    assert done.stdout.endswith("() compute 4 4")


def test_the_page_of_the_api_names_what_there_is() -> None:
    """Every name in reference/api.md exists, and every function and property is in it."""
    text = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    for owner, kind in (("report", rl.Report), ("kernel", rl.Kernel), ("rl", rl), ("comparison", rl.Comparison)):
        for name in re.findall(rf"\b{owner}\.([a-z]\w*)", text):
            assert hasattr(kind, name), f"{owner}.{name}"
    rows = " ".join(line for line in text.splitlines() if line.startswith("|"))
    for kind in (rl.Report, rl.Kernel, rl.Verdict):
        for name in vars(kind):
            assert name.startswith("_") or re.search(rf"\.{name}\b", rows), f"{kind.__name__}.{name}"
    for name in ("open", "compare", "predict", "ingest_reports", "profile"):
        assert f"`rl.{name}(" in rows
