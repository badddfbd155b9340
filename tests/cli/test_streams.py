"""Commands whose stdout or stderr is closed, full, or without a reader."""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.ncu_rep_writer import KernelSpec, ReportSpec, write_report

from rooflens.cli.group import main
from rooflens.model.roofline import datasheets

ROOFLENS = f"{shlex.quote(sys.executable)} -m rooflens"


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in bash, which fails if any part of a pipe fails."""
    argv = ["bash", "-c", f"set -o pipefail; {command}"]
    return subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder)  # noqa: S603 - ours


@pytest.mark.parametrize(
    ("redirected", "status", "said"),
    [
        ("| true", 0, ""),
        (">&-", 1, "error: stdout is closed: nothing can be written to it\n"),
        ("> /dev/full", 1, "error: no disk space left\n\nhint: free some space, or write elsewhere\n"),
        ("2>&- > listed && grep -c H100 listed > counted", 0, ""),
    ],
)
def test_the_status_is_right_wherever_the_output_goes(tmp_path: Path, redirected: str, status: int, said: str) -> None:
    """A missing reader is no failure, a closed or full stdout is reported; there is never a traceback."""
    done = shell(f"{ROOFLENS} gpus {redirected}", tmp_path)
    assert (done.returncode, done.stderr) == (status, said)


@pytest.mark.parametrize("redirected", ["2>&-", "2> /dev/full", "2>&1 | true; exit ${PIPESTATUS[0]}"])
def test_the_status_says_what_happened_whoever_hears_it(fixtures: Path, tmp_path: Path, redirected: str) -> None:
    """A closed, full or unread stderr never changes the exit status: success, damage, wrong usage, gate."""
    names = ("MW_Baseline", "MW_DivToMult")
    good, better = (fixtures / "published" / f"GPU_workshop__{name}.ncu-rep" for name in names)
    commands = {
        f"analyze {good}": 0,
        "analyze none.ncu-rep": 1,
        "analyze --bogus": 2,
        f"compare {better} {good} --fail-on 5%": 5,
    }
    for command, status in commands.items():
        done = shell(f"{ROOFLENS} {command} > /dev/null {redirected}", tmp_path)
        assert done.returncode == status, command


def test_a_reader_that_went_does_not_hide_what_failed(tmp_path: Path) -> None:
    """A command whose output nobody reads keeps its exit status, here that of a damaged report."""
    report = write_report(tmp_path / "a.ncu-rep", ReportSpec([KernelSpec("kernel()", {"gpu__time_duration.sum": 1e3})]))
    (tmp_path / "b.ncu-rep").write_bytes(report.read_bytes()[:-1])
    done = shell(f"{ROOFLENS} analyze . --format json | true", tmp_path)
    assert done.returncode == 1
    assert "1 of 2 reports could not be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_deleted_working_folder_is_told(tmp_path: Path) -> None:
    """In a deleted folder, relative paths fail and absolute paths are read."""
    gone = f"mkdir gone; cd gone; rmdir ../gone; {ROOFLENS}"
    done = shell(f"{gone} report {tmp_path}/none.ncu-rep -o page.html", tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EMFILE, "error: too many files are open for this process\n\nhint: allow more with `ulimit -n 1024`\n"),
        (errno.EIO, "error: Input/output error: `a?file`\n"),
    ],
)
def test_what_the_system_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch, number: int, said: str) -> None:
    """An unexpected system error is reported in the system's words with the file, without a traceback."""

    def refuse() -> None:
        raise OSError(number, os.strerror(number), "a\x1bfile")

    monkeypatch.setattr(datasheets, "load_datasheets", refuse)
    result = CliRunner().invoke(main, ["gpus"])
    assert (result.exit_code, result.stderr) == (1, said)
