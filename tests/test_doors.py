"""Whatever people type or paste leads somewhere, and says where."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.loops import for_all

from rooflens.cli.group import ALIASES, COMMANDS, MEANT, main
from rooflens.collect.failures import FAILURES, said_of
from rooflens.model.compare.gate import SINGLE_RUN_BAND
from rooflens.model.knowledge.items import words
from rooflens.report.overview.kernels import _COLUMNS, _LAUNCH, _quantity
from rooflens.writing.about import explained

PUBLISHED = Path(__file__).parents[1] / "fixtures/published"
SAXPY = str(PUBLISHED / "GPU-Roofline-Profiler__saxpy.ncu-rep")
NO_PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the "
    "target device 0. For instructions on enabling permissions and to get more information see "
    "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@for_all(
    "name",
    (
        *("L1", "L2", "smem", "register", "registers", "clock", "noise", "gate", "NVTX", "H100", "accuracy", "MIO"),
        *("tail effect", "TMA", "NVLink", "divergence", "RTX 4090"),
    ),
)
def test_about_knows_what_people_ask_for(name: str) -> None:
    """Terms that are no findings, and GPUs, have an answer in any case."""
    for spelt in (name, name.upper(), name.lower()):
        assert _run("about", spelt).exit_code == 0


@for_all(
    "typed",
    [
        ("about", "ERR_NVGPUCTRPERM"),
        ("about", "err_nvgpuctrperm"),
        ("about", NO_PERMISSION),
        ("about", *NO_PERMISSION.split()),
        (NO_PERMISSION,),
        tuple(NO_PERMISSION.split()),
        ("ERR_NVGPUCTRPERM",),
    ],
)
def test_what_ncu_printed_is_explained_however_it_is_pasted(typed: tuple[str, ...]) -> None:
    """An error line of ncu, quoted or not, and the error's name say what to do, with or without `about`."""
    done = _run(*typed)
    assert done.exit_code == 0, done.output
    assert "NVreg_RestrictProfilingToAdminUsers=0" in done.output


@for_all("line", ["No kernels were profiled.", "Failed to lock GPU clock frequencies", "LibraryNotLoaded"])
def test_every_row_of_the_table_of_failures_is_found_by_its_line(line: str) -> None:
    """`about` explains a message like a collection would."""
    assert said_of(f"==ERROR== {line}")
    assert explained(f"==ERROR== {line}")


def test_a_text_of_no_failure_is_no_failure() -> None:
    """Ordinary words match no pattern of the table of failures."""
    assert [one for one in words() if said_of(one)] == []
    assert FAILURES


@for_all("typed, meant", MEANT.items())
def test_a_word_for_a_command_gets_that_command_alone(typed: str, meant: str) -> None:
    """Words such as `open` and `csv` are answered with an existing command for them."""
    assert typed not in {*COMMANDS, *ALIASES}
    assert meant.split(maxsplit=1)[0] in {*COMMANDS, "--help"}
    done = _run(typed, "x")
    assert done.exit_code == 2
    assert f"did you mean `{meant}`?" in done.stderr


@for_all("head", [column.heading for column in (*_COLUMNS, *_LAUNCH)])
def test_columns_takes_the_heads_of_the_table(head: str) -> None:
    """Every head of the usual table is accepted by --columns."""
    assert _quantity(head) == _quantity(head.upper())


def test_a_gpu_that_a_report_names_itself_is_noted() -> None:
    """For a report that names its GPU, a note says that `--gpu` has no effect, and what has."""
    done = _run("analyze", SAXPY, "--gpu", "h100-sxm")
    assert "recorded on NVIDIA GeForce RTX 5070" in done.stderr
    assert "rooflens predict --from REPORT --gpu h100-sxm" in done.stderr
    assert "note: --gpu" not in _run("analyze", SAXPY).stderr


def test_a_path_given_to_predict_is_its_report() -> None:
    """A report instead of an operation acts like --from."""
    given = ["--gpu", "h100-sxm"]
    assert _run("predict", SAXPY, *given).stdout == _run("predict", "--from", SAXPY, *given).stdout != ""


def test_a_project_of_nsight_compute_is_named(tmp_path: Path) -> None:
    """`.ncu-proj` is refused with a hint which files are reports, even without a command."""
    project = tmp_path / "a.ncu-proj"
    project.write_text("<?xml version='1.0'?>")
    assert "names reports (`.ncu-rep`), and holds none" in _run(str(project)).stderr


@pytest.mark.parametrize(
    "place", ["rooflens/cli/commands/compare.py", "rooflens/api/comparison.py", "docs/tutorials/gate.md"]
)
def test_the_band_of_a_single_run_is_told_with_what_widens_it(place: str) -> None:
    """Wherever the 10 % band is mentioned, the grids that get twice as much are mentioned too."""
    text = " ".join((PUBLISHED.parents[1] / place).read_text(encoding="utf-8").split()).replace('" "', "")
    assert f"{SINGLE_RUN_BAND:.0%}".replace("%", " %") in text
    assert "below one wave" in text


@for_all(
    "typed, meant",
    (
        ("analyze --sort dram", "--format csv"),
        ("analyze --csv", "`--format csv`"),
        ("analyze -o out.csv", "rooflens report PATH -o FILE"),
        ("explain -k saxpy", "`--kernel NAME`"),
        ("hotspots --line", "`--by line`"),
        ("analyze saxpy", "`--kernel saxpy`"),
        ("analyze --columns dram", "`dram_bytes`"),
        ("predict attention-flash --seq 4096", "`--length SIZE`"),
        ("profile ./app", "rooflens profile -- ./app"),
    ),
)
def test_an_option_that_there_is_not_is_answered_with_what_does_it(typed: str, meant: str) -> None:
    """Other tools' options, a kernel instead of a path, half a column and a program without dashes get suggestions."""
    command, *others = typed.split()
    reads = command not in {"predict", "profile"}
    done = _run(command, *([SAXPY] if reads else []), *others)
    assert done.exit_code in {1, 2}
    assert meant in done.stderr


def test_the_name_of_a_kernel_is_a_column_that_is_always_there() -> None:
    """Listing the kernel's name among columns selects the other columns."""
    assert (
        _run("analyze", SAXPY, "--columns", "kernel,time").stdout == _run("analyze", SAXPY, "--columns", "time").stdout
    )


def test_a_dry_run_without_a_gpu_says_how_to_name_a_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run without a GPU suggests --chip, as the command may be for another machine."""
    monkeypatch.setenv("PATH", "")
    done = _run("collect", "--dry-run", "--", "./app")
    assert done.exit_code == 3
    assert "`--chip gh100`" in done.stderr
