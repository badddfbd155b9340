"""The cache: its place, and that its files are trusted only if complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflens.cache import cache_folder, keep, kept

DATA = b"one\r\ntwo \xb5\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "rooflens"


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The cache is where XDG says, else below the home folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "rooflens"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "rooflens"


def test_what_is_kept_is_read_again(folder: Path) -> None:
    """A reader gets every byte back, and the cache holds nothing else."""
    assert kept("a") is None
    keep("a", DATA)
    assert kept("a") == DATA
    assert [file.name for file in folder.iterdir()] == ["a"]


@pytest.mark.parametrize("damage", [lambda kept: kept[:-1], lambda kept: kept + b"!", lambda _: b"", lambda _: b"\xff"])
def test_what_is_damaged_is_not_used(folder: Path, damage: object) -> None:
    """A file without its digest counts as missing, and is replaced by a complete one."""
    keep("a", DATA)
    (folder / "a").write_bytes(damage((folder / "a").read_bytes()))  # type: ignore[operator]
    assert kept("a") is None
    keep("a", DATA)
    assert kept("a") == DATA


def test_a_cache_that_cannot_be_used_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the folder cannot be made, or there is no home, nothing is cached."""
    folder.write_text("a file, not a folder")
    keep("a", DATA)
    assert kept("a") is None
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", _no_home)
    keep("a", DATA)
    assert kept("a") is None


def _no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")
