"""Texts of instructions are cached, and valid only for the very report and disassembler."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rooflens import cache
from rooflens.ingest.reports import texts
from rooflens.ingest.reports.child import in_child
from rooflens.ingest.reports.nvidia import tell
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.texts import keep_sass, kept_sass

ONE, OTHER = "a" * 64, "b" * 64
WANTED = {0: [16, 32], 7: [48]}
FOUND = {0: {16: "FFMA R1, R2, R3, R4", 32: "EXIT"}}
KEPT: dict[int, dict[int, str]] = {**FOUND, 7: {}}
REPORT = "CudaCode__naive.ncu-rep"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of texts in an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rooflens" / "sass-1"


def test_what_was_asked_for_is_kept_with_what_nobody_knew() -> None:
    """Cached texts are returned for the same report, also for a part of it; another report or address has none."""
    keep_sass(ONE, WANTED, FOUND)
    assert kept_sass(ONE, WANTED) == KEPT
    assert kept_sass(ONE, {0: [32]}) == {0: {32: "EXIT"}}
    assert kept_sass(OTHER, WANTED) is None
    assert kept_sass(ONE, {0: [16, 64]}) is None
    assert kept_sass(ONE, {1: [16]}) is None


@pytest.mark.parametrize("content", [b"", b"[]", b'{"0":{"16":5}}', b'{"0":{"x":"EXIT"}}', b"\xff"])
def test_what_is_no_text_is_not_used(folder: Path, content: bytes) -> None:
    """A file of another form counts as missing, even with a valid checksum."""
    keep_sass(ONE, WANTED, FOUND)
    (file,) = folder.iterdir()
    cache.keep(f"sass-1/{file.name}", content)
    assert kept_sass(ONE, WANTED) is None


def test_another_disassembler_is_asked_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If NVIDIA's module was replaced or removed, texts of the earlier one are not used."""
    keep_sass(ONE, WANTED, FOUND)
    package = tmp_path / "another_module.py"
    package.write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("another_module", "no_module_of_this_name"):
        monkeypatch.setattr(texts, "_MODULE", name)
        assert kept_sass(ONE, WANTED) is None


def test_the_cache_does_not_grow_for_ever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond its limit the cache drops the oldest texts."""
    monkeypatch.setattr(texts, "_WRITES_BETWEEN_TRIMS", 1)
    monkeypatch.setattr(texts, "MOST_BYTES", 400)
    for number in range(10):
        keep_sass(f"{number:064}", WANTED, FOUND)
        assert sum(file.stat().st_size for file in folder.iterdir()) <= 400
    assert kept_sass(f"{9:064}", WANTED) == KEPT
    assert kept_sass(f"{0:064}", WANTED) is None


@pytest.mark.corpus
def test_a_report_reads_the_same_from_the_cache(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time the hottest instructions have the same text, without asking NVIDIA's module."""
    asked: list[object] = []

    def counted(function: Callable[..., object], *arguments: object, **options: object) -> object:
        asked.append(function)
        return in_child(function, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(texts, "in_child", counted)
    first = read_report(corpus / REPORT, "one")
    second = read_report(corpus / REPORT, "one")
    assert asked == [tell]
    assert any(spot.sass for kernel in first.kernels for spot in kernel.hotspots)
    assert second == first


@pytest.mark.corpus
def test_nothing_is_kept_of_a_report_that_was_replaced(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """If another report is in place when the module opens it, its texts are not used for the first: opcodes stay."""
    path = shutil.copy(corpus / REPORT, tmp_path / "same.ncu-rep")

    def replaced(function: Callable[..., object], *arguments: object, **options: object) -> object:
        shutil.copy(corpus / "speedy_scan__profile.ncu-rep", path)
        return in_child(function, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(texts, "in_child", replaced)
    report = read_report(path, "same")
    assert report.notes == ("SASS text is missing: it changed while it was read",)
    assert not any(" " in (spot.sass or "") for kernel in report.kernels for spot in kernel.hotspots)
    assert not folder.exists()
