"""Short forms of options."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from support.loops import for_all

from rooflens.cli.group import main
from rooflens.cli.lines import with_options

SAXPY = str(Path(__file__).parents[2] / "fixtures/published/GPU-Roofline-Profiler__saxpy.ncu-rep")
GEMM = ("predict", "gemm", "--m", "64", "--n", "64", "--k", "64")


def _run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, arguments, env=environment)


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
