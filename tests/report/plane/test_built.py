"""Charts that were built before: the same specification without Altair, and a new one for whatever else it is of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from rooflens.cache import cache_folder, keep
from rooflens.report.plane import built


class _Layout(Struct, frozen=True):
    bars: int
    units: tuple[str, ...] = ("FLOP",)


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Counted:
    """Return a function that counts what it builds, beside an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built._builder.cache_clear()
    return _Counted()


class _Counted:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, layout: _Layout) -> dict[str, Any]:
        self.count += 1
        return {"width": 0.1, "of": list(layout.units), "bars": layout.bars, "title": {"text": "\u00b5 </script>"}}


def test_a_layout_is_built_once(build: _Counted) -> None:
    """An equal layout gives an equal chart, in the order in which it was built; another one is built."""
    first = built.built(_Layout(1), build)
    assert list(first) == ["width", "of", "bars", "title"]
    assert built.built(_Layout(1), build) == first == _Counted()(_Layout(1))
    assert build.count == 1
    assert [built.built(one, build)["bars"] for one in (_Layout(2), _Layout(2, ("OP",)))] == [2, 2]
    assert build.count == 3


def test_other_sources_and_another_altair_build_anew(build: _Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an older rooflens or another Altair built is not shown."""
    built.built(_Layout(1), build)
    monkeypatch.setattr(built, "_builder", lambda: b"another")
    built.built(_Layout(1), build)
    assert build.count == 2


def test_sources_are_told_apart_by_size_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed file of the package is other sources: a developer sees each edit."""
    (tmp_path / "report" / "plane").mkdir(parents=True)
    source = tmp_path / "report" / "plane" / "built.py"
    source.write_text("1", encoding="utf-8")
    monkeypatch.setattr(built, "__file__", str(source))
    states = set()
    for text in ("1", "12"):
        source.write_text(text, encoding="utf-8")
        built._builder.cache_clear()
        states.add(built._builder())
    built._builder.cache_clear()
    assert len(states) == 2
    assert None not in states


def test_what_is_damaged_is_built_again(build: _Counted) -> None:
    """A file of the cache that holds no chart costs time and nothing else."""
    built.built(_Layout(1), build)
    (file,) = (cache_folder() / built.FOLDER).iterdir()
    for content in ("", "[1]", "{"):
        keep(f"{built.FOLDER}/{file.name}", content.encode())
        assert built.built(_Layout(1), build)["bars"] == 1
    assert build.count == 4


def test_without_a_folder_for_it_every_chart_is_built(build: _Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that cannot be written is no error."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    for _ in range(2):
        assert built.built(_Layout(1), build)["bars"] == 1
    assert build.count == 2
