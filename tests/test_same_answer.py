"""Commands and Python give the same answer, and selecting part of a report changes no answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import rooflens as rl
from rooflens.cli.group import main

FIXTURES = Path(__file__).parents[1] / "fixtures"
SAXPY = str(FIXTURES / "published/GPU-Roofline-Profiler__saxpy.ncu-rep")
WITH_CODE = "GPU-MMS__profile.ncu-rep"
"""Four kernels in ten launches, with machine code."""


def _printed(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def _alike(report: str, folder: Path) -> None:
    opened = rl.open(report)
    assert opened.to_dict() == json.loads(_printed("analyze", report, "--format", "json"))
    assert str(opened.digest(600)) == _printed("analyze", report, "--format", "digest", "--max-tokens", "600").rstrip()
    assert (
        str(opened[0].explain()).rstrip()
        == _printed("explain", report, "--kernel", opened[0].key, "--format", "md").rstrip()
    )
    of_command, of_python = folder / "command.html", folder / "python.html"
    _printed("report", report, "-o", str(of_command))
    assert opened.save(of_python).read_bytes() == of_command.read_bytes()


def test_commands_and_python_write_the_same(tmp_path: Path) -> None:
    """JSON, digest, explanation and page of a report equal those of the opened object byte by byte."""
    _alike(SAXPY, tmp_path)


@pytest.mark.corpus
def test_commands_and_python_look_into_the_same_kernels(corpus: Path, tmp_path: Path) -> None:
    """They also agree for a report with machine code, from which loops and their findings come."""
    _alike(str(corpus / WITH_CODE), tmp_path)


@pytest.mark.corpus
def test_what_is_chosen_changes_no_key_and_nothing_that_others_say(corpus: Path) -> None:
    """A launch selected by key keeps the verdict that it has among all launches."""
    report = str(corpus / WITH_CODE)
    opened = rl.open(report)
    later = [kernel for kernel in opened if "#" in kernel.key]
    assert len(later) == 5
    for kernel in later:
        (alone,) = json.loads(_printed("analyze", report, "--kernel", kernel.key, "--format", "json"))["kernels"]
        assert alone["key"] == kernel.key
        assert alone == opened[kernel.key].to_dict()["kernels"][0] == kernel.to_dict()


def test_predicting_elsewhere_is_said_alike() -> None:
    """Predictions on another GPU, and the reasons for their absence, are the same."""
    (answer,) = rl.predict(from_=SAXPY, gpu="h100-sxm")
    printed = json.loads(_printed("predict", "--from", SAXPY, "--gpu", "h100-sxm", "--format", "json"))
    assert json.dumps(answer.about_ns) in json.dumps(printed)
    with pytest.raises(rl.RooflensError) as told:
        rl.predict(from_=SAXPY, dtype="fp7")
    result = CliRunner().invoke(main, ["predict", "--from", SAXPY, "--dtype", "fp7"])
    assert f"error: {told.value}" in result.stderr
