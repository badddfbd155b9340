"""Defaults from a file or the environment, and short forms of options."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from support.loops import for_all

from rooflens.checking import CheckedTable, parse_toml
from rooflens.cli.group import COMMANDS, main
from rooflens.cli.lines import with_options
from rooflens.cli.settings import NOT_IN_FILES, defaults_of, option_names
from rooflens.errors import InputError

SAXPY = str(Path(__file__).parents[2] / "fixtures/published/GPU-Roofline-Profiler__saxpy.ncu-rep")
GEMM = ("predict", "gemm", "--m", "64", "--n", "64", "--k", "64")


def _run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, arguments, env=environment)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder of a repository."""
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    return tmp_path


def test_a_file_of_the_folder_or_above_gives_defaults(project: Path) -> None:
    """`[tool.rooflens.analyze]` applies in the project's folders, until a nearer `rooflens.toml` overrides it."""
    (project / "pyproject.toml").write_text('[tool.rooflens.analyze]\nformat = "csv"\n')
    assert _run("analyze", SAXPY).stdout.startswith("source,index")
    assert _run(SAXPY).stdout.startswith("source,index")
    (project / "a" / "rooflens.toml").write_text('[analyze]\nformat = "digest"\n')
    assert _run("analyze", SAXPY).stdout.startswith("# ")


def test_the_command_line_comes_first_then_the_environment_then_the_file(project: Path) -> None:
    """The command line overrides the environment, which overrides the file, all with the option's own name."""
    (project / "rooflens.toml").write_text('[analyze]\nformat = "csv"\n')
    assert _run("analyze", SAXPY, ROOFLENS_ANALYZE_FORMAT="digest").stdout.startswith("# ")
    assert json.loads(_run("analyze", SAXPY, "--json", ROOFLENS_ANALYZE_FORMAT="digest").stdout)["kernels"]


def test_no_file_above_the_repository_is_read(project: Path) -> None:
    """No settings file above the repository is read."""
    (project / "a" / ".git").mkdir()
    (project / "rooflens.toml").write_text('[analyze]\nformat = "csv"\n')
    assert not _run("analyze", SAXPY).stdout.startswith("source,index")


def test_options_of_predict_reach_its_operations(project: Path) -> None:
    """A shared option is set once for all operations of `predict`; an operation's own option only for it."""
    (project / "rooflens.toml").write_text('[predict]\ngpu = "h200"\n[predict.gemm]\ndtype = "fp8"\n')
    assert "gemm, fp8, on NVIDIA H200" in _run(*GEMM).stdout
    assert "on NVIDIA A10" in _run(*GEMM, ROOFLENS_PREDICT_GEMM_GPU="a10", ROOFLENS_PREDICT_GEMM_DTYPE="fp16").stdout
    assert _run(*GEMM, ROOFLENS_PREDICT_GEMM_FORMAT="json").stdout.startswith("{")


@for_all(
    "text, said",
    [
        ('[analyze]\nfromat = "csv"', "did you mean `format`?"),
        ('[analize]\nformat = "csv"', "did you mean `analyze`?"),
        ('[predict]\nfromat = "csv"', "did you mean `format`?"),
        ("analyze = 3", "`rooflens.toml`: `analyze` must be a table, not 3"),
        ("[analyze", "`rooflens.toml` is not valid TOML: "),
        ('[analyze]\nformat = "cvs"', "`rooflens.toml`: `analyze.format`: 'cvs' is not one of"),
        ("[report]\ntable = 1", "`rooflens.toml`: `report.table` must be true or false, not 1"),
        ("[collect]\ntimeout = inf", "`collect.timeout` must be a number, not inf"),
        ("[predict]\ngpu = []", "`predict.gpu` must be a text in quotes, or a list of such, not []"),
        ("[predict]\ngemm = 3", "`rooflens.toml`: `predict.gemm` must be a table, not 3"),
        ('[collect]\nncu = "/tmp/evil"', "--ncu cannot be set in a file"),
        ('[ingest]\nstore = "s3://evil/store"', "an address, as of --store, cannot be set in a file"),
        ("[report]\nforce = true", "--force cannot be set in a file"),
        ("[collect]\nkill = true", "--kill cannot be set in a file"),
        ('[compare]\nfail-on = "90%"', "--fail-on cannot be set in a file"),
        ('[compare]\nfloor = "1s"', "--floor cannot be set in a file"),
        ("[compare]\nper-kernel = false", "--per-kernel cannot be set in a file"),
    ],
)
def test_what_a_file_may_not_say_is_an_error(text: str, said: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Typos in a file get a suggestion; options that run programs, send data or overwrite files are refused."""
    folder = tmp_path_factory.mktemp("settings")
    (folder / "rooflens.toml").write_text(text)
    command = {
        "collect": ("collect", "--dry-run", "gemm"),
        "ingest": ("ingest", SAXPY),
        "report": ("report", SAXPY),
        "compare": ("compare", SAXPY, SAXPY),
    }
    typed = next((command[name] for name in command if f"[{name}]" in text), ("analyze", SAXPY))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = _run(*(GEMM if "[predict]" in text else typed))
    assert done.exit_code in {1, 2}
    assert said in done.stderr


def test_a_project_that_says_nothing_to_us_is_left_alone(project: Path) -> None:
    """A project file without settings for us is ignored, valid or not; ours that cannot be read are an error."""
    for text, status in (
        ("[project", 0),
        ("[project]\nname = 'rooflens'", 0),
        ("[tool.rooflens", 1),
        ("[tool]\nrooflens = 3", 1),
    ):
        (project / "pyproject.toml").write_text(text)
        assert _run("analyze", SAXPY).exit_code == status, text


def _not_utf8(file: Path) -> None:
    file.write_bytes(b'[analyze]\ngpu = "\xff"\n')


def _huge(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(2 << 20)


@contextmanager
def _no_longer_than(seconds: int) -> Iterator[None]:
    """End the block: what waits for a pipe without a writer waits for ever."""

    def end(*_: object) -> None:
        pytest.fail(f"still waiting after {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
@for_all(
    "name, make, said",
    [
        (name, make, said)
        for name in ("rooflens.toml", "pyproject.toml")
        for make, said in (
            (_not_utf8, "is not a text file"),
            (_huge, "is over 1 MiB"),
            (Path.mkdir, "is not a regular file"),
            (os.mkfifo, "is not a regular file"),
            (lambda file: file.symlink_to("gone"), "cannot read"),
            (lambda file: file.symlink_to("/dev/zero"), "is not a regular file"),
            (lambda file: file.symlink_to("/proc/self/mem"), "cannot read"),
        )
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(
    name: str, make: Callable[[Path], None], said: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A settings file that is no readable text is an error with a hint: never ignored, never waited for."""
    folder = tmp_path_factory.mktemp("settings")
    make(folder / name)
    with pytest.MonkeyPatch.context() as patch, _no_longer_than(30):
        patch.chdir(folder)
        done = _run("analyze", SAXPY)
        assert (done.exit_code, _run("--isolated", "analyze", SAXPY).exit_code) == (1, 0)
    assert f"{name}`" in done.stderr
    assert said in done.stderr
    assert "hint: `rooflens --isolated` reads no such file" in done.stderr


VALUES = {
    "an integer": "1",
    "a negative": "-7",
    "64 bits": f"{2**63}",
    "400 digits": f"1{'0' * 400}",
    "5,000 digits": "1" * 5000,
    "an integer of 40,000 hexadecimal digits": f"0x{'f' * 40_000}",
    "a float": "1.5",
    "a huge float": "1e308",
    "inf": "inf",
    "nan": "nan",
    "a truth value": "true",
    "a text": '"x"',
    "an empty text": '""',
    "a text of 200,000 characters": f'"{"x" * 200_000}"',
    "control characters": r'"a\u0000b\u001b[31m"',
    "marks of direction": r'"a\u202eb"',
    "a list": '["a", "b"]',
    "an empty list": "[]",
    "a mixed list": '["a", 1, true]',
    "a nested list": "[[1], [[2]]]",
    "a table": "{a = 1}",
    "tables": "[{a = 1}, {b = 2}]",
    "a date": "2026-11-28",
    "a time": "07:32:00",
    "lists 3,000 deep": f"{'[' * 3000}1{']' * 3000}",
    "tables 3,000 deep": f"{'{a=' * 3000}1{'}' * 3000}",
    "a key of 3,000 parts": f"{{{'a.' * 3000}b = 1}}",
}


def _commands() -> dict[str, click.Command]:
    """Return each command by its table in a settings file, operations of `predict` among them."""
    with click.Context(main) as ctx:
        found = {name: command for name in COMMANDS if (command := main.get_command(ctx, name))}
        predict = found.pop("predict")
        assert isinstance(predict, click.Group)
        operations = {f"predict.{one}": predict.get_command(ctx, one) for one in predict.list_commands(ctx)}
    return found | {name: command for name, command in operations.items() if command}


def test_no_value_of_any_option_is_a_traceback() -> None:
    """A value of any kind, for any option of a file, is taken, or one error that names the file and the key."""
    wrong, taken, refused = [], 0, 0
    commands = _commands()
    for kind, text in VALUES.items():
        try:
            value = parse_toml(f"x = {text}", "`rooflens.toml`", "a hint").values["x"]
        except InputError:
            continue  # no option has it: the next test
        for table, command in commands.items():
            for name, option in option_names(command).items():
                given = CheckedTable("`rooflens.toml`", {name: value}, "a hint", f"{table}.")
                try:
                    ctx = click.Context(command)
                    ctx.default_map = defaults_of(command, ctx, given)
                    option.handle_parse_result(ctx, {}, [])
                    taken += 1
                except InputError as error:
                    refused += 1
                    is_named = f"`{table}.{name}`" in f"{error}" or f"--{name}" in f"{error}"
                    wrong += [] if is_named and "`rooflens.toml`: " in f"{error}" and error.hint else [f"{error}"]
                except Exception as error:  # noqa: BLE001 - it would be a traceback
                    wrong.append(f"{table}.{name}, {kind}: {type(error).__name__}: {error}")
    assert wrong == []
    assert min(taken, refused) > 500


@for_all(
    "kind, option", [(kind, option) for kind in VALUES for option in ("top", "launches", "gpu", "format", "kernel")]
)
def test_a_wrong_value_is_one_line_of_the_command(
    kind: str, option: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Through the whole command, a wrong value ends in one bounded `error:` line and a hint, and exit code 1 or 2."""
    folder = tmp_path_factory.mktemp("settings")
    (folder / "rooflens.toml").write_text(f"[analyze]\n{option} = {VALUES[kind]}\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = _run("analyze", SAXPY)
    assert done.exit_code in {0, 1, 2}, done.exception
    if done.exit_code:
        (error,) = (line for line in done.stderr.splitlines() if line.startswith("error: "))
        assert "rooflens.toml" in done.stderr
        assert len(error) < 500
        assert "\nhint: " in done.stderr


def test_options_that_files_may_not_set_exist() -> None:
    """Every option on the list of forbidden options exists."""
    with click.Context(main) as ctx:
        found = {name for one in COMMANDS if (command := main.get_command(ctx, one)) for name in option_names(command)}
    assert found >= NOT_IN_FILES


@for_all(
    "typed",
    [("analyze", SAXPY), (SAXPY,), ("explain", SAXPY), ("hotspots", SAXPY), ("compare", SAXPY, SAXPY), GEMM],
)
def test_json_is_short_for_its_format(typed: tuple[str, ...]) -> None:
    """`--json` equals `--format json` in every command with that format."""
    short, long = _run(*typed, "--json"), _run(*typed, "--format", "json")
    assert (short.exit_code, short.stdout) == (long.exit_code, long.stdout)


def test_json_of_a_profiled_program_is_its_own() -> None:
    """`--json` after `--` belongs to the profiled program."""
    with click.Context(main) as ctx:
        command = main.get_command(ctx, "analyze")
    assert command is not None
    assert with_options(command, ["--json", "--", "--json"]) == ["--format", "json", "--", "--json"]


def test_open_shows_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser gets the file's address; if none starts, the command says so and keeps the file."""
    opened: list[str] = []
    monkeypatch.setattr(click, "launch", lambda address: len(opened.append(address) or opened) - 1)
    pages = [tmp_path / "a.md", tmp_path / "b.md"]
    first, second = (_run("report", SAXPY, "-o", str(page), "--open") for page in pages)
    assert opened == [page.as_uri() for page in pages]
    assert "no browser" not in first.stderr
    assert "no browser could be started" in second.stderr
    assert second.exit_code == 0
    assert "--open needs a file" in _run("report", SAXPY, "-o", "-", "--format", "md", "--open").stderr
