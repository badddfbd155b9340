"""The cache: where it stands, and texts that are made once and trusted only whole."""

from __future__ import annotations

from pathlib import Path

import pytest
import vl_convert

from rooflens.cache import cache_folder, cached_text
from rooflens.report.html import embed


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "rooflens"


class Maker:
    """Make a text and count how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *_: object, **__: object) -> str:
        """Make the text."""
        self.calls += 1
        return "one\r\ntwo µ\n"


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The cache stands where XDG says, else below the home folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "rooflens"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "rooflens"


def test_a_text_is_made_once(folder: Path) -> None:
    """The second reader gets the kept text, every character of it, and nothing else lies in the cache."""
    make = Maker()
    assert cached_text("a.js", make) == cached_text("a.js", make) == "one\r\ntwo µ\n"
    assert make.calls == 1
    assert [file.name for file in folder.iterdir()] == ["a.js"]


@pytest.mark.parametrize("damage", [lambda kept: kept[:-1], lambda kept: kept + b"!", lambda _: b"", lambda _: b"\xff"])
def test_a_damaged_text_is_made_again(folder: Path, damage: object) -> None:
    """A file that does not have its digest is not used, and is replaced by a whole one."""
    make = Maker()
    whole = cached_text("a.js", make)
    kept = (folder / "a.js").read_bytes()
    (folder / "a.js").write_bytes(damage(kept))  # type: ignore[operator]
    assert cached_text("a.js", make) == whole
    assert make.calls == 2
    assert (folder / "a.js").read_bytes() == kept


def test_a_cache_that_cannot_be_used_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the folder cannot be made, or there is no home, the text is made each time."""
    make = Maker()
    folder.write_text("a file, not a folder")
    assert cached_text("a.js", make) == "one\r\ntwo µ\n"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", _no_home)
    assert cached_text("a.js", make) == "one\r\ntwo µ\n"
    assert make.calls == 2


def _no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_the_second_page_does_not_bundle_vega_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that starts later takes the script from the cache; the file is named by both versions."""
    make = Maker()
    monkeypatch.setattr(vl_convert, "javascript_bundle", make)
    read_in_a_new_process = embed.vega_bundle.__wrapped__
    assert read_in_a_new_process() == read_in_a_new_process()
    assert make.calls == 1
    assert [file.name.startswith("vega-lite-") for file in folder.iterdir()] == [True]
    monkeypatch.setattr(embed, "version", lambda _: "0.0.0")
    read_in_a_new_process()
    assert make.calls == 2
