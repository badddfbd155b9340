"""The bar of `benchmarks/bar.py`: what it is held to, and when it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import bar

_TREE = bar.Tree(Path(), Path())
_QUICK, _SLOW = bar.Work("quick", "", ()), bar.Work("slow", "", ())


def _hold(monkeypatch: pytest.MonkeyPatch, *runs: float) -> int:
    """Hold two commands to a base: one as fast as it was, and one that takes so many times as long, run by run."""
    left = iter(runs)

    def measure(work: bar.Work, *_: object) -> bar.Line:
        seconds = [next(left) if work is _SLOW else 1.0] * bar.ROUNDS
        return bar.Line(work, [1.0] * bar.ROUNDS, [1.0] * bar.ROUNDS, seconds)

    monkeypatch.setattr(bar, "measure", measure)
    return bar.bar([_QUICK, _SLOW], {"": Path()}, _TREE, _TREE)


def test_ten_per_cent_more_in_three_runs_of_three_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only what seemed slower is measured again, and one run without a difference clears it."""
    assert _hold(monkeypatch, 1.12, 1.11, 1.2) == 1
    said = capsys.readouterr()
    assert (said.out.count("quick"), said.out.count("slow ")) == (1, 3)
    assert said.err.startswith("\nerror: `slow`: over 10% more CPU")
    assert _hold(monkeypatch, 1.3, 1.3, 1.1) == 0
    assert _hold(monkeypatch, 1.1) == 0


def test_without_a_base_nothing_fails(capsys: pytest.CaptureFixture[str]) -> None:
    """A clone without history prints ratios to the yardsticks, and dashes for what it cannot compare."""
    bar.show(bar.Line(_SLOW, [2.0], [float("nan")], [3.0]))
    assert capsys.readouterr().out.split() == ["slow", "loop", "-", "1.50", "3.00", "s", "-"]


def test_a_first_run_finds_nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Charts are built in it, so that what building them takes is held to the base; other lines have a cache."""
    caches = []

    def noted(*_: object, env: dict[str, str], **__: object) -> tuple[float, int]:
        caches.append(env["XDG_CACHE_HOME"])
        return 1.0, 1

    monkeypatch.setattr(bar, "cpu_and_peak", noted)
    tree = bar.Tree(tmp_path, tmp_path)
    for work in bar.WORKS:
        tree.cpu_s(work, tmp_path)
    first = [work.title for work, cache in zip(bar.WORKS, caches, strict=True) if cache == os.devnull]
    assert first == ["first page of one report with code"]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Make a repository of one commit the one that is measured, and run git in it."""
    program = shutil.which("git")
    if program is None:
        pytest.skip("no git")
    monkeypatch.setattr(bar, "ROOT", tmp_path)
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")

    def run(*arguments: str) -> str:
        command = (program, *identity, *arguments)
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 - git alone

    run("init", "--initial-branch", "main")
    run("commit", "--allow-empty", "--message", "first")
    return run


def test_the_base_is_a_tag_else_where_the_branch_began_else_the_parent(git: Callable[..., str]) -> None:
    """A first commit has none; a named one has to be known."""
    first = git("rev-parse", "HEAD")
    assert bar.find_base(None) is None
    git("commit", "--allow-empty", "--message", "second")
    assert bar.find_base(None) == (first, "the parent commit")
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    second = git("rev-parse", "HEAD")
    for message in ("third", "fourth"):
        git("commit", "--allow-empty", "--message", message)
    assert bar.find_base(None) == (second, "where this branch left origin/main")
    git("tag", "v1", first)
    assert bar.find_base(None) == ("v1", "the last tag")
    assert bar.find_base("HEAD^") == (git("rev-parse", "HEAD^"), "HEAD^")
    with pytest.raises(SystemExit, match="git knows no commit `v9`"):
        bar.find_base("v9")
