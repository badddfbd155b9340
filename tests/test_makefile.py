"""What `make` does, and above all what it leaves alone: other people's environments and folders."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make")

PYTHON = """#!/bin/sh
case "$*" in
  -c*) ;;
  "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; echo made "$3" >> log;;
  *pip*) echo "$(dirname "$0") pip" >> log; echo "$*" > pipped
    [ ! -e broken ] || exit 1; touch "$(dirname "$0")/rooflens";;
esac
"""
"""A stand-in for Python: it logs what it makes and installs, and fails if a file called `broken` exists."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with the Makefile, a pyproject.toml and the stand-in for Python."""
    shutil.copy(MAKEFILE, tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def make(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run make in a folder, with the stand-in for Python."""
    clean = {name: value for name, value in os.environ.items() if name not in {"OUT", "VENV", "MAKEFLAGS", "MAKELEVEL"}}
    return subprocess.run(  # noqa: S603 - our own Makefile
        ["make", "PYTHON=./python", *arguments],  # noqa: S607 - as users call it
        cwd=folder,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", [(), ("--environment-overrides",)])
def test_out_of_the_environment_is_not_removed(checkout: Path, options: tuple[str, ...]) -> None:
    """An environment variable OUT is ignored: only `make OUT=x` names another folder."""
    for name in ("out", "precious", "named"):
        (checkout / name).mkdir()
    make(checkout, *options, "clean", OUT="precious")
    assert ((checkout / "precious").is_dir(), (checkout / "out").exists()) == (True, False)
    assert "--folder out/first_light " in make(checkout, "-n", "gpu", OUT="precious").stdout
    assert "--folder named/first_light " in make(checkout, "-n", "gpu", "OUT=named").stdout
    make(checkout, "clean", "OUT=named")
    assert not (checkout / "named").exists()


def test_our_environment_is_made_once_and_removed(checkout: Path) -> None:
    """The environment is reinstalled only if pyproject.toml is newer, and an interrupted installation is resumed."""
    (checkout / "broken").touch()
    assert make(checkout, "install").returncode != 0
    (checkout / "broken").unlink()
    for _ in range(2):
        assert make(checkout, "install").returncode == 0
    assert (checkout / "log").read_text().splitlines() == ["made .venv", ".venv/bin pip", "made .venv", ".venv/bin pip"]
    make(checkout, "clean")
    assert not (checkout / ".venv").exists()


def test_a_page_needs_the_package_alone(checkout: Path) -> None:
    """`make demo` installs no tools, `make check` its own, and targets that need everything install it once."""
    extras = []
    for goals in (("demo",), ("demo", "check"), ("lint",), ("install", "test"), ("check",), ("demo",)):
        make(checkout, *goals)
        extras.append((checkout / "pipped").read_text().split()[-1] if (checkout / "pipped").exists() else "nothing")
        (checkout / "pipped").unlink(missing_ok=True)
    assert extras == [".", ".[check]", "nothing", ".[test,lint,docs]", "nothing", "nothing"]


@pytest.mark.parametrize("where", ["argument", "environment"])
def test_an_environment_of_others_is_used_as_it_is(checkout: Path, where: str) -> None:
    """Nothing is installed into or removed from a foreign environment; if it lacks rooflens, a hint says so."""
    (checkout / "theirs" / "bin").mkdir(parents=True)
    (checkout / "theirs" / "pyvenv.cfg").touch()
    given = ("VENV=theirs",) if where == "argument" else ()
    environment = {"VENV": "theirs"} if where == "environment" else {}
    lacking = make(checkout, "install", *given, **environment)
    assert lacking.returncode != 0
    assert "error: rooflens is not installed in theirs, which make did not make and leaves as it is" in lacking.stdout
    assert "hint: theirs/bin/python -m pip install -e '.[test,lint,docs]', or VENV=another" in lacking.stdout
    (checkout / "theirs" / "bin" / "rooflens").touch()
    assert make(checkout, "install", *given, **environment).returncode == 0
    assert "theirs/bin/rooflens profile" in make(checkout, "-n", "profile", *given, **environment).stdout
    cleaned = make(checkout, "clean", *given, **environment)
    assert "theirs stays: make did not make it" in cleaned.stdout
    assert (checkout / "theirs" / "pyvenv.cfg").exists()
    assert not (checkout / "log").exists()


def test_every_name_that_replay_offers_is_one_that_it_takes(checkout: Path) -> None:
    """A name that is wrong is answered with those of the stored reports, each of which replays."""
    for folder, name in (("published", "lab__gemm.ncu-rep"), ("synthetic", "attention.synthetic.ncu-rep")):
        (checkout / "fixtures" / folder).mkdir(parents=True)
        (checkout / "fixtures" / folder / name).touch()
    make(checkout, "install")
    refused = make(checkout, "replay", "WORKLOAD=nosuch").stdout
    offered = refused.partition("stored are: ")[2].split()
    assert offered == ["lab__gemm", "attention"]
    for name in (*offered, "gemm"):
        assert f'--title "{name}"' in make(checkout, "-n", "replay", f"WORKLOAD={name}").stdout.splitlines()[-1]
        assert ".ncu-rep" in make(checkout, "-n", "replay", f"WORKLOAD={name}").stdout.splitlines()[-1]
