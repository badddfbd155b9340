"""What the command line explains about itself, and about input that it does not understand."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from support.traces import kernel, write_trace

from rooflens import cli
from rooflens.cli.group import COMMANDS, main
from rooflens.cli.loading import by_folder
from rooflens.cli.usage import COMMON, HEADINGS, Command
from rooflens.cli.welcome import welcome
from rooflens.errors import UnknownNameError

REPORT = Path(__file__).parents[2] / "fixtures/published/llm.c__adamw_coalsecing_shared.ncu-rep"

_ON_A_GPU = {"profile", "collect", "calibrate"}
_SERVES = {"mcp", "viewer"}


def _leaves() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(main)
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        yield name, command


def _examples(command: click.Command) -> list[str]:
    _, _, lines = (command.epilog or "").partition("Examples:\n")
    return [line.strip() for line in lines.splitlines()]


_EXAMPLES = [(name, line) for name, command in _leaves() for line in _examples(command)]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, fixtures: Path) -> Path:
    """A folder with the files that the examples name."""
    folder = tmp_path_factory.mktemp("desk")
    pair = [fixtures / "published" / f"GPU_workshop__MW_{name}.ncu-rep" for name in ("Baseline", "DivToMult")]
    for name, report in zip(("report", "before", "after", "v1", "v2"), (*pair, *reversed(pair), pair[0]), strict=False):
        shutil.copy(report, folder / f"{name}.ncu-rep")
    for run in (1, 2, 3):
        shutil.copy(pair[0], folder / f"saxpy_{run}.ncu-rep")
    for place, report in zip(("reports", "before", "after", "ladder"), (pair[0], *pair, pair[1]), strict=True):
        (folder / place).mkdir()
        shutil.copy(report, folder / place / f"gemm_{report.name}")
    launched = [kernel("compute_tendencies_x_279_gpu", 1, grid=[65535, 1, 1])]
    for name in (
        "trace.json",
        "trace.json.gz",
        "before.json.gz",
        "after.json.gz",
        "trace.sqlite",
    ):  # their content decides what they are
        write_trace(folder / name, launched)
    made = CliRunner().invoke(main, ["ingest", str(folder / "reports"), "--store", str(folder / "runs")])
    assert made.exit_code == 0, made.output
    return folder


@pytest.mark.parametrize(("name", "line"), [(n, e) for n, e in _EXAMPLES if n not in _ON_A_GPU | _SERVES], ids=str)
def test_the_examples_of_help_run(name: str, line: str, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example in `--help` that needs no GPU succeeds if its files exist."""
    if "s3://" in line:
        pytest.skip("needs a server")
    monkeypatch.chdir(desk)
    monkeypatch.setenv("COLUMNS", "120")
    part = next(part for part in line.replace('eval "$(', "").split("|") if "rooflens" in part)
    words = shlex.split(part.replace(')"', ""), comments=True)
    given = (desk / "report.ncu-rep").read_bytes() if words[-1] == "-" else None
    result = CliRunner().invoke(main, words[1:], input=given)
    nothing_matches = name in {"analyze", "explain"} and "gemm*" in line
    fails = {1} if nothing_matches or "--fail-on" in line else set()
    assert result.exit_code in {0, *fails}, result.output


@pytest.mark.parametrize(("name", "line"), [(n, e) for n, e in _EXAMPLES if n in _ON_A_GPU], ids=str)
def test_the_examples_of_collecting_can_be_understood(name: str, line: str) -> None:
    """Examples that need a GPU have existing options and workloads: a dry run prints ncu's command line."""
    words = [word for word in shlex.split(line)[2:] if word != "--dry-run"]
    result = CliRunner().invoke(main, ["collect", "--dry-run", "--chip", "gh100", *words])
    assert result.exit_code in {0, 3}, result.output  # 3: no ncu on this machine
    assert name in line


def test_every_command_with_options_shows_examples() -> None:
    """The help of every command with options shows examples."""
    missing = [name for name, command in _leaves() if command.params and not command.epilog]
    assert set(missing) <= {"predict", "store"}  # predict has them in its text, store has subcommands
    assert "rooflens predict gemm" in (main.get_command(click.Context(main), "predict") or main).get_help(
        click.Context(main)
    )


def test_every_file_of_commands_is_one_that_help_lists() -> None:
    """Every file in `commands/` is listed by the help; otherwise it would silently not be a command."""
    files = {file.stem for file in (Path(cli.__file__).parent / "commands").glob("*.py")} - {"__init__"}
    assert files == set(COMMANDS)


def test_help_lists_every_command_in_its_section_and_cuts_none_off() -> None:
    """Help lists every command in its section with its whole summary."""
    shown = CliRunner().invoke(main, ["--help"]).output
    commands = shown[shown.index("Read reports:") :]
    assert "..." not in commands
    for name in COMMANDS:
        assert f"\n  {name} " in commands


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        ("analyse report.ncu-rep", "no command is called `analyse`", "did you mean `analyze`?"),
        ("predict gemmm", "no operation is called `gemmm`", "did you mean `gemm`"),
        ("analyze --formt json", "no such option: --formt", "did you mean `--format`"),
        ("analyze --format jsn x", "invalid value for '--format'", "`rooflens analyze --help`"),
        ("compare", "missing argument 'BASE [HEAD]...'", "`rooflens compare --help`"),
        ("--verson", "no such option: --verson", "did you mean `--version`?"),
        ("gpus h10x", "no GPU is called `h10x`", "did you mean `h100"),
        ("gpus nothing-of-the-kind", "no GPU is called", "`rooflens gpus` lists them"),
        ("workloads attenton", "no workload is called `attenton`", "did you mean `attention`"),
        ("metrics --chip gh10", "no GPU chip is called `gh10`", "did you mean `gh100`"),
        ("metrics --chip 9.9", "no compute capability is called `9.9`", "did you mean"),
        ("predict gemm --m 1 --n 1 --k 1 --gpu h10x", "no GPU is called `h10x`", "did you mean"),
        ("predict gemm --m 1 --n 1 --k 1 --dtype bfloat16", "no type is called `bfloat16`", "did you mean `bf16`?"),
        ("predict gemm --m 1 --n 1 --k 1 --dtype bf61", "no type is called `bf61`", "did you mean `bf16`"),
        ("about colums", "no verdict, finding, flag", "did you mean `columns`?"),
        ("about frst move", "no verdict, finding, flag", "did you mean `first move`"),
        (f"analyze {REPORT} --columns zzz", "no column is called `zzz`", "`rooflens about columns` lists them"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_what_is_not_understood_is_told_in_one_way(words: str, error: str, hint: str) -> None:
    """Unknown commands, options, values and names give exit code 2, one error and one hint with similar names."""
    result = CliRunner().invoke(main, words.split(), prog_name="rooflens")
    first, blank, second = result.stderr.splitlines()
    assert result.exit_code == 2
    assert first.startswith(f"error: {error}")
    assert blank == ""
    assert second.startswith("hint: ")
    assert hint in second
    assert len(second) <= 300


def test_columns_are_asked_for_by_the_heads_of_the_table() -> None:
    """Every head of the usual table is accepted by --columns, also the first; `ai` is that of the roofline."""
    shown = CliRunner().invoke(main, ["analyze", str(REPORT)], prog_name="rooflens").stdout.splitlines()
    usual = next(line for line in shown if line.startswith("kernel "))
    heads = re.split(r"\s{2,}", usual.strip())
    assert heads[0] == "kernel"
    assert {"time", "verdict", "limit", "first move"} <= set(heads)
    asked = CliRunner().invoke(main, ["analyze", str(REPORT), "--columns", ",".join(heads)], prog_name="rooflens")
    assert asked.exit_code == 0, asked.stderr
    short = CliRunner().invoke(main, ["analyze", str(REPORT), "--columns", "ai"], prog_name="rooflens")
    assert "FLOP/B at DRAM" in short.stdout


def test_a_remark_on_many_files_of_a_folder_is_one_line() -> None:
    """A remark shared by all files of a folder is printed once, for the folder; other remarks stay separate."""
    remarks = [(f"a/{i}.txt", "GPU guessed") for i in range(15)] + [("a/0.txt", "no time"), ("b/0.txt", "GPU guessed")]
    assert by_folder(remarks) == ["a: 15 files: GPU guessed", "a/0.txt: no time", "b/0.txt: GPU guessed"]


def test_a_list_of_names_in_a_hint_is_bounded() -> None:
    """However many names exist, a hint lists a few and counts the rest."""
    hint = UnknownNameError("thing", "zzz", [f"name_{i}" for i in range(500)]).hint
    assert len(hint) <= 300
    assert hint.startswith("one of: name_0, name_1")
    assert hint.endswith(" more")


def test_a_hostile_name_reaches_the_terminal_as_text() -> None:
    """Control characters in typed text are not printed back."""
    result = CliRunner().invoke(main, ["\x1b[2J"])
    assert result.exit_code == 2
    assert "\x1b" not in result.stderr


def test_without_a_command_it_names_three_ways_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rooflens` alone prints first steps for users with a report, a GPU, or neither."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, [])
    assert result.exit_code == 0
    for way in ("rooflens analyze report.ncu-rep", "rooflens profile -- ", "rooflens predict gemm"):
        assert way in result.output


def test_the_newest_report_of_the_folder_is_the_first_example(tmp_path: Path) -> None:
    """In a folder with reports, the first steps name the newest and can be run."""
    for age, name in enumerate(("old.ncu-rep", "new.ncu-rep", "newer.txt")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (age, age))
    assert "rooflens analyze new.ncu-rep" in welcome(tmp_path)


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("rooflens ana", "analyze"),
        ("rooflens gpus h100-s", "h100-sxm"),
        ("rooflens workloads atten", "attention"),
        ("rooflens predict gemm --gpu h100-s", "h100-sxm"),
        ("rooflens analyze metrics.csv --gpu h100-s", "h100-sxm"),
        ("rooflens predict gemm --dtype tf", "tf32"),
        ("rooflens predict gemm --out-dtype fp3", "fp32"),
        ("rooflens profile atten", "attention"),
        ("rooflens collect saxpy --chip gh1", "gh100"),
        ("rooflens metrics --chip gh1", "gh100"),
        ("rooflens profile gemm_ladder --case 03", "03_shared_tile"),
    ],
)
def test_shells_complete_commands_and_names(typed: str, completed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call of `rooflens completion bash` completes commands and our own names."""
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    monkeypatch.setenv("_ROOFLENS_COMPLETE", "bash_complete")
    assert f"plain,{completed}" in CliRunner().invoke(main, [], prog_name="rooflens").output.splitlines()


@pytest.mark.parametrize("command", ["analyze", "compare", "report"])
def test_shells_complete_reports_as_files(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a report the shell is told to complete file names too."""
    monkeypatch.setenv("COMP_WORDS", f"rooflens {command} fixtures/pub")
    monkeypatch.setenv("COMP_CWORD", "2")
    monkeypatch.setenv("_ROOFLENS_COMPLETE", "bash_complete")
    assert CliRunner().invoke(main, [], prog_name="rooflens").output.strip() == "file,fixtures/pub"


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["report", "--help"], 0), (["analyze", "x"], 3)])
def test_a_command_without_its_packages_says_so(arguments: list[str], code: int) -> None:
    """With only click installed all help works, and commands that read name the missing package, with no traceback."""
    started = f"import sys; sys.modules['msgspec'] = None; sys.argv = ['rooflens', *{arguments!r}]"
    started += "\nfrom rooflens.cli.group import main\nmain()"
    done = subprocess.run([sys.executable, "-c", started], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == code
    assert ("needs the Python package `msgspec`" in done.stderr) == bool(code)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str) -> None:
    """The completion script sets the variable that click listens to."""
    assert "_ROOFLENS_COMPLETE" in CliRunner().invoke(main, ["completion", shell]).output


def test_a_report_without_a_command_is_analyzed(fixtures: Path, tmp_path: Path) -> None:
    """A report without a command is analyzed, with options; a missing or wrong file is explained as by `analyze`."""
    report = str(fixtures / "synthetic" / "attention.synthetic.ncu-rep")
    for options in ((), ("--top", "2"), ("--format", "json")):
        short, full = (CliRunner().invoke(main, [*command, report, *options]) for command in ((), ("analyze",)))
        assert (short.exit_code, short.stdout) == (0, full.stdout)
    (tmp_path / "notes.txt").write_text("no report")
    for name in ("notes.txt", "none.ncu-rep"):
        short, full = (CliRunner().invoke(main, [*command, str(tmp_path / name)]) for command in ((), ("analyze",)))
        assert (short.exit_code, short.stderr) == (1, full.stderr)


def test_diff_is_compare(fixtures: Path) -> None:
    """`diff` is another name of `compare`, and the list shows the command once."""
    report = str(fixtures / "synthetic" / "attention.synthetic.ncu-rep")
    one, other = (CliRunner().invoke(main, [name, report, report]) for name in ("diff", "compare"))
    assert (one.exit_code, one.stdout) == (0, other.stdout)
    assert "diff" not in main.list_commands(click.Context(main))


def test_help_shows_common_options_first_and_the_rest_under_headings() -> None:
    """Help shows each option once under its heading, and no heading names an option that no command has."""
    known: set[str] = set()
    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        known.update(option for one in command.params for option in one.opts)
        if isinstance(command, Command):
            shown = CliRunner().invoke(main, [name, "--help"]).output
            options = [
                line.split()[0] for line in shown.partition("\nOptions:")[2].splitlines() if line.startswith("  -")
            ]
            assert len(options) == len(set(options)), name
            assert len(options) == len([one for one in command.params if not getattr(one, "hidden", True)]) + 1, name
    assert {option for options in (*HEADINGS.values(), COMMON) for option in options} <= known
    shown = CliRunner().invoke(main, ["analyze", "--help"]).output
    places = [shown.index(words) for words in ("Options:", "--kernel", "--top", "How reports are read:", "--gpu")]
    assert places == sorted(places)
