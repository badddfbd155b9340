from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.traces import kernel, write_trace

from rooflens.cli.group import main

ROOT = Path(__file__).parents[3]
STEP = ROOT / "examples" / "step.synthetic.json"
REPORT = ROOT / "fixtures" / "synthetic" / "attention.synthetic.ncu-rep"


def run(*arguments: object) -> Result:
    """Run the command line."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_it_writes_a_copy_and_counts(tmp_path: Path) -> None:
    """`annotate` prints counts and the file on stderr, and nothing on stdout."""
    output = tmp_path / "out.json"
    done = run("annotate", STEP, REPORT, "-o", output)
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == (
        f"annotated 8 of 12 kernel events (4 of 6 kernels); 4 events match no kernel of the reports\nwrote {output}\n"
    )
    assert len(json.loads(output.read_text())["traceEvents"]) == 58


def test_only_chosen_kernels(tmp_path: Path) -> None:
    """`--kernel` leaves other kernels unannotated."""
    done = run("annotate", STEP, REPORT, "--kernel", "flash*", "-o", tmp_path / "out.json.gz")
    assert "annotated 2 of 12 kernel events (1 of 6 kernels)" in done.stderr


def test_a_file_is_kept_unless_forced(tmp_path: Path) -> None:
    """An existing file is overwritten only with --force."""
    output = tmp_path / "out.json"
    output.write_text("mine")
    assert run("annotate", STEP, REPORT, "-o", output).exit_code == 2
    assert output.read_text() == "mine"
    assert run("annotate", STEP, REPORT, "-o", output, "--force").exit_code == 0
    assert output.read_text() != "mine"


def test_a_damaged_report_is_named_and_the_others_used(tmp_path: Path) -> None:
    """A damaged report is named, the copy is written with the others, and the exit code is 1."""
    bad = tmp_path / "bad.ncu-rep"
    bad.write_bytes(REPORT.read_bytes()[:-9])
    done = run("annotate", STEP, REPORT, bad, "-o", tmp_path / "out.json")
    assert done.exit_code == 1
    assert "1 of 2 reports could not be read" in done.stderr
    assert (tmp_path / "out.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("{step}", "{report}", "-o", "out.txt"), 2, "does not end as a trace does"),
        (("{step}", "-o", "out.json"), 2, "no report given"),
        (("{report}", "{report}", "-o", "out.json"), 2, "is a report, not a trace"),
        (("x.sqlite", "{report}", "-o", "out.json"), 2, "is of Nsight Systems"),
        (("x.nsys-rep", "{report}", "-o", "out.json"), 2, "is of Nsight Systems"),
        (("t.json", "{report}", "-o", "t.json"), 2, "is the trace itself"),
        (("t.json", "{report}", "-o", "./t.json", "--force"), 2, "is the trace itself"),
        (("t.json", "{report}", "-o", "out.json"), 1, "no kernel of the trace is in the reports"),
        (("none.json", "{report}", "-o", "out.json"), 1, "No such file"),
        (("empty.json", "{report}", "-o", "out.json"), 1, "has no GPU kernel among its 0 events"),
        (("{step}", "{report}", "-o", "t.json/out.json"), 1, "cannot write"),
    ],
)
def test_what_cannot_be_done_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, words: str
) -> None:
    """An impossible request gives an error and a hint, a line each, and writes nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.sqlite").write_bytes(b"SQLite format 3\0")
    write_trace(tmp_path / "t.json", [kernel("other", 1)])
    write_trace(tmp_path / "empty.json", [])
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    done = run("annotate", *(one.format(step=STEP, report=REPORT) for one in arguments))
    assert done.exit_code == code
    error, hint = (line for line in done.stderr.splitlines() if line)
    assert error.startswith("error: ")
    assert words in error
    assert hint.startswith("hint: ")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
