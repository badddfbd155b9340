"""Defaults from a file or the environment, and short forms of options."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from support.loops import for_all

from rooflens.cli.group import COMMANDS, main
from rooflens.cli.settings import NOT_IN_FILES, option_names, written_out

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
        ("analyze = 3", "`analyze` is not a table of options"),
        ("[analyze", "rooflens.toml: "),
        ('[analyze]\nformat = "cvs"', "'cvs' is not one of"),
        ('[collect]\nncu = "/tmp/evil"', "--ncu cannot be set in a file"),
        ('[ingest]\nstore = "s3://evil/store"', "an address, as of --store, cannot be set in a file"),
        ("[report]\nforce = true", "--force cannot be set in a file"),
    ],
)
def test_what_a_file_may_not_say_is_an_error(text: str, said: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Typos in a file get a suggestion; options that run programs, send data or overwrite files are refused."""
    folder = tmp_path_factory.mktemp("settings")
    (folder / "rooflens.toml").write_text(text)
    command = {"collect": ("collect", "--dry-run", "gemm"), "ingest": ("ingest", SAXPY), "report": ("report", SAXPY)}
    typed = next((command[name] for name in command if f"[{name}]" in text), ("analyze", SAXPY))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = _run(*(GEMM if "[predict]" in text else typed))
    assert done.exit_code in {1, 2}
    assert said in done.stderr


def test_a_project_that_is_no_toml_or_says_nothing_to_us_is_left_alone(project: Path) -> None:
    """A project file that is no TOML, or has no settings for us, is ignored: other tools complain."""
    for text in ("[tool.rooflens", "[tool]\nrooflens = 3", "[project]\nname = 'rooflens'"):
        (project / "pyproject.toml").write_text(text)
        assert _run("analyze", SAXPY).exit_code == 0


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
    assert written_out(command, ["--json", "--", "--json"]) == ["--format", "json", "--", "--json"]


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
