"""Whatever people type or paste leads somewhere, and says where."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from support.loops import for_all

import rooflens as rl
from rooflens.cli.group import ALIASES, COMMANDS, main
from rooflens.failures import FAILURES, failure_of
from rooflens.meant import BY_COMMAND, BY_OPTION, NAMES, OPTIONS
from rooflens.meant import COMMANDS as COMMAND_ROWS
from rooflens.model.compare.gate import SINGLE_RUN_BAND
from rooflens.model.knowledge.items import words
from rooflens.report.overview.kernels import _KERNEL_COLUMNS, _LAUNCH, _quantity
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
    assert failure_of(f"==ERROR== {line}")
    assert explained(f"==ERROR== {line}")


def test_a_text_of_no_failure_is_no_failure() -> None:
    """Ordinary words match no pattern of the table of failures."""
    assert [one for one in words() if failure_of(one)] == []
    assert FAILURES


_AFTER = {
    "analyze": (SAXPY,),
    "analyze --format csv": (SAXPY,),
    "analyze --format json": (SAXPY,),
    "analyze --format md": (SAXPY,),
    "report": (SAXPY, "-o", "page.html"),
    "report --open": (SAXPY, "-o", "page.html"),
    "explain": (SAXPY,),
    "compare": (SAXPY, SAXPY),
    "compare --fail-on": (SAXPY, SAXPY, "5%"),
    "ingest": (SAXPY, "runs"),
    "profile": ("saxpy", "--dry-run", "--ncu", "./absent"),
    "gpus": ("h100",),
    "--help": (),
    "--version": (),
}
"""What a command of the table takes, so that the line runs."""


def test_every_word_of_the_table_runs_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word for a command does what its row says, names it on stderr, and is no command of its own."""
    monkeypatch.setattr("click.launch", lambda _: 0)
    wrong = []
    for number, (word, meant) in enumerate(BY_COMMAND.items()):
        results = []
        for which, line in (("typed", [word]), ("meant", meant.split())):
            place = tmp_path / f"{number}{which}"
            place.mkdir()
            monkeypatch.chdir(place)
            rest = [*_AFTER[meant]]
            if which == "meant" and line[-1] == "--fail-on":
                rest = [*rest[:-1], line.pop(), rest[-1]]
            if which == "meant" and line[0] == "ingest":
                rest.insert(1, "--store")
            done = _run(*line, *rest)
            results.append((done.exit_code, done.stdout, sorted(one.name for one in place.iterdir())))
        told = meant.startswith("--") or f"note: `rooflens {word}` is `rooflens {meant}`" in _run(word).stderr
        if results[0] != results[1] or word in {*COMMANDS, *ALIASES} or not told:
            wrong.append((word, results))
    assert BY_COMMAND
    assert wrong == []


_LINES = {
    "--kernel": f"analyze {SAXPY} WORD saxpy",
    "--top": f"analyze {SAXPY} WORD 1",
    "--store": f"ingest {SAXPY} WORD runs",
    "--fail-on": f"compare {SAXPY} {SAXPY} WORD 5%",
    "--length": "predict attention-flash WORD 1024",
    "--width": "predict attention-flash WORD 64",
    "--format csv": f"analyze {SAXPY} WORD",
    "--format json": f"analyze {SAXPY} WORD",
    "--format md": f"analyze {SAXPY} WORD",
    "--format digest": f"analyze {SAXPY} WORD",
    "--format html": f"report {SAXPY} WORD",
    "--format svg": f"report {SAXPY} WORD",
    "--format pdf": f"report {SAXPY} WORD",
    "--format png": f"report {SAXPY} WORD",
    "--by line": f"hotspots {SAXPY} WORD",
    "--by sass": f"hotspots {SAXPY} WORD",
    "--by function": f"hotspots {SAXPY} WORD",
}
"""A line for each option of the table."""


def test_every_option_of_the_table_is_read_as_its_row_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An option of the table does what the one beside it does, and is no option of that command."""
    wrong = []
    for number, (word, meant) in enumerate(BY_OPTION.items()):
        results = []
        for which, option in (("typed", word), ("meant", meant)):
            place = tmp_path / f"{number}{which}"
            place.mkdir()
            monkeypatch.chdir(place)
            done = _run(*_LINES[meant].replace("WORD", option).split())
            results.append((done.exit_code, done.stdout, done.stderr, sorted(one.name for one in place.iterdir())))
        if results[0] != results[1] or "no such option" in results[0][2]:
            wrong.append((word, results))
    assert BY_OPTION
    assert wrong == []


def test_the_table_is_small_and_no_second_way_is_documented() -> None:
    """The table has at most forty rows, and `--help` names none of its options."""
    assert len(NAMES) + len(COMMAND_ROWS) + len(OPTIONS) <= 40
    commands = [found for one in COMMANDS if (found := main.get_command(click.Context(main), one))]
    names = {name for command in commands for param in command.params for name in param.opts}
    assert sorted(names & {*BY_OPTION}) == []


@for_all(
    "typed, meant",
    [
        (f"ingest {SAXPY} runs", f"ingest {SAXPY} --store runs"),
        (f"compare {SAXPY} {SAXPY} 5%", f"compare {SAXPY} {SAXPY} --fail-on 5%"),
        (f"compare {SAXPY} {SAXPY} --fail-on 0.05", f"compare {SAXPY} {SAXPY} --fail-on 0.05"),
        (f"{SAXPY} -o page.html", f"report {SAXPY} -o page.html"),
        (f"{SAXPY} --html", f"report {SAXPY} --format html"),
        (f"metrics {SAXPY}", f"metrics --report {SAXPY}"),
        ("explain long scoreboard", "about long scoreboard"),
        ("occupancy", "about occupancy"),
        ("help compare", "compare --help"),
        ("collect --dry-run --chip gh100 ./app -k 5", "collect --dry-run --chip gh100 -- ./app -k 5"),
        ("collect --dry-run --chip gh100 -k gemm ./app", "collect --dry-run --chip gh100 --kernel gemm -- ./app"),
    ],
)
def test_what_stands_for_itself_by_its_place_is_read_so(
    typed: str, meant: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A store behind reports, a limit, a file to write, a report, a word, a program: none needs its option."""
    results = []
    for line in (typed, meant):
        place = tmp_path_factory.mktemp("place")
        with contextlib.chdir(place):
            done = _run(*line.split())
        results.append((done.exit_code, done.stdout, sorted(one.name for one in place.iterdir())))
    assert results[0] == results[1]
    assert "no such" not in done.stderr


@for_all(
    "typed, said",
    [
        ("check A A", "for example `--fail-on 5%`"),
        ("ingest A", "for example `--store runs`"),
        ("ingest A A", "for example `--store runs`"),
        ("compare A A --fail-on 1", "may be 1 % or 100 %"),
    ],
)
def test_a_line_that_may_mean_two_things_is_not_guessed(typed: str, said: str) -> None:
    """A gate without its limit, a store that may be a report, and a limit of 1 are asked for."""
    done = _run(*typed.replace("A", SAXPY).split())
    assert done.exit_code == 2
    assert said in done.stderr


def test_what_is_piped_into_a_line_without_words_is_analyzed() -> None:
    """`cat report | rooflens` and `rooflens < report` read it; an empty stdin, or none, is greeted."""

    def answered(*words: str, **how: Any) -> str:
        line = [sys.executable, "-m", "rooflens", *words]
        return subprocess.run(line, capture_output=True, check=True, **how).stdout.decode()  # noqa: S603 - ours

    content = Path(SAXPY).read_bytes()
    alone = answered("analyze", "-", input=content)
    with Path(SAXPY).open("rb") as file:
        assert answered(stdin=file) == alone
    assert answered(input=content) == alone != ""
    assert answered(stdin=subprocess.DEVNULL).startswith("What limits each GPU kernel")


def test_a_page_of_ours_is_written_again_and_a_file_of_others_is_kept(tmp_path: Path) -> None:
    """A second report over its own page needs no force; a page without our mark, or our mark in no page, does."""
    page = tmp_path / "page.html"
    for _ in range(2):
        assert _run("report", SAXPY, "-o", str(page)).exit_code == 0
    rl.open(SAXPY).save(page)
    notes = tmp_path / "notes.md"
    notes.write_bytes(page.read_bytes())
    page.write_text("<!doctype html><meta name=generator content=Sphinx>", encoding="utf-8")
    for file in (page, notes):
        before = file.read_bytes()
        assert "exists" in _run("report", SAXPY, "-o", str(file)).stderr
        assert file.read_bytes() == before


@for_all("head", [column.heading for column in (*_KERNEL_COLUMNS, *_LAUNCH)])
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
        ("analyze --no-color", "`NO_COLOR=1`"),
        ("analyze --verbose", "rooflens explain PATH"),
        ("analyze saxpy", "`--kernel saxpy`"),
        ("analyze --columns dram", "`dram_bytes`"),
        ("explain -o x.md", "`> FILE`"),
    ),
)
def test_an_option_that_there_is_not_is_answered_with_what_does_it(typed: str, meant: str) -> None:
    """Options of other tools, a kernel instead of a path and half a column get the way to it."""
    command, *others = typed.split()
    done = _run(command, SAXPY, *others)
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
