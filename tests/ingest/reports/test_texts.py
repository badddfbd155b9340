"""Check what is asked of NVIDIA's module after reading, and what happens to the reports if it dies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.encoded_code import report_of_loops
from support.ncu_rep_writer import Instances, KernelSpec, ReportSpec, encode_report

from rooflens.errors import EnvironmentMissingError, InputError
from rooflens.ingest.reports import texts
from rooflens.ingest.reports.read import ReadOptions, read_bytes, read_report
from rooflens.ingest.reports.report import ReadReport
from rooflens.ingest.reports.texts import SassTexts, TextsRequest, add_texts

TABLE = Instances({0x1000 + 16 * number: 1.0 + number for number in range(9)}, 45.0)
OPTIONS = ReadOptions(texts_later=True)
FOUND = "EXIT"


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, ReadReport]]:
    """Return three reports whose hottest instructions lack their text, and one without code."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    metrics: list[dict[str, Any]] = [{"inst_executed": TABLE, "m": number} for number in range(3)] + [{"m": 3}]
    data = [encode_report(ReportSpec([KernelSpec("kernel()", one)])) for one in metrics]
    return [(Path(f"{number}.ncu-rep"), read_bytes(one, str(number))) for number, one in enumerate(data)]


def _child(calls: list[list[str]], killer: str = "") -> Any:
    """Stand in for the child: it dies at one report, whatever else it was asked."""

    def in_child(_: object, asked: Sequence[TextsRequest], deadline_s: float) -> list[SassTexts]:
        calls.append([str(one.path) for one in asked])
        assert deadline_s == OPTIONS.deadline_s * len(asked)
        if killer in calls[-1]:
            raise InputError("NVIDIA's reader ended with SIGSEGV")
        return [{at: dict.fromkeys(addresses, FOUND) for at, addresses in one.addresses.items()} for one in asked]

    return in_child


def _told(report: ReadReport) -> set[str | None]:
    return {spot.sass for spot in report.kernels[0].hotspots if spot.by == "sass"}


def test_one_child_tells_of_all_reports(
    reports: list[tuple[Path, ReadReport]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One child process is asked about all reports that need it, and its answers are in their kernels."""
    calls: list[list[str]] = []
    monkeypatch.setattr(texts, "in_child", _child(calls))
    done = add_texts(reports, OPTIONS)
    assert calls == [["0.ncu-rep", "1.ncu-rep", "2.ncu-rep"]]
    assert [_told(one) for one in done] == [{FOUND}] * 3 + [set()]
    assert not any(one.notes or one.untold for one in done)


def test_a_report_that_kills_the_child_costs_its_own_text(
    reports: list[tuple[Path, ReadReport]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a death each report is asked about alone: only the cause lacks its text, and a note says so."""
    calls: list[list[str]] = []
    monkeypatch.setattr(texts, "in_child", _child(calls, killer="1.ncu-rep"))
    done = add_texts(reports, OPTIONS)
    assert calls[1:] == [["0.ncu-rep"], ["1.ncu-rep"], ["2.ncu-rep"]]
    assert [_told(one) for one in done] == [{FOUND}, {None}, {FOUND}, set()]
    assert [len(one.notes) for one in done] == [0, 1, 0, 0]
    assert done[1].notes == ("SASS text is missing: NVIDIA's reader ended with SIGSEGV",)


def test_without_the_module_reports_are_read_and_a_note_says_so(
    reports: list[tuple[Path, ReadReport]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where NVIDIA's module is not installed, all reports keep what was read of them, with one and the same note."""

    def in_child(*_: object, **__: object) -> None:
        raise EnvironmentMissingError("`ncu-report` is not installed")

    monkeypatch.setattr(texts, "in_child", in_child)
    done = add_texts(reports, OPTIONS)
    assert [one.kernels for one in done] == [one.kernels for _, one in reports]
    note = "SASS text is missing: `ncu-report` is not installed"
    assert [one.notes for one in done] == [(note,), (note,), (note,), ()]


def test_the_module_is_not_asked_where_it_must_not_be(
    reports: list[tuple[Path, ReadReport]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--reader direct`, the module is not asked, and a note says what is missing."""
    calls: list[list[str]] = []
    monkeypatch.setattr(texts, "in_child", _child(calls))
    done = add_texts(reports, ReadOptions(reader="direct"))
    assert calls == []
    assert {one.notes for one in done[:3]} == {("SASS text is missing: NVIDIA's module was not asked",)}


def test_without_the_module_instructions_are_named_by_their_opcodes(tmp_path: Path) -> None:
    """With `--reader direct` the hottest instructions have the opcodes that our own decoder reads, without operands."""
    report = read_report(report_of_loops(tmp_path / "loops.ncu-rep", 1, 1), "loops", ReadOptions("direct"))
    named = {spot.pc: spot.sass for spot in report.kernels[0].hotspots if spot.by == "sass"}
    assert {pc: named[pc] for pc in (16, 32, 48, 64, 80)} == {16: "LDG", 32: "STS", 48: "BRA", 64: "LDS", 80: "FFMA"}
    assert any("SASS text" in note for note in report.notes)


@pytest.mark.corpus
def test_our_opcodes_are_those_of_nvidias_module(corpus: Path) -> None:
    """Of published reports, each opcode that stands for a missing text is the start of that text."""
    checked = 0
    for name in ("KernelBench__matmul_kernel", "IndexSpaces.jl__profile", "llm.c__adamw_coalsecing_shared"):
        ours, theirs = (read_report(corpus / f"{name}.ncu-rep", name, ReadOptions(one)) for one in ("direct", "auto"))
        for mine, full in zip(ours.kernels, theirs.kernels, strict=True):
            for spot, other in zip(mine.hotspots, full.hotspots, strict=True):
                if spot.by == "sass" and spot.sass and other.sass:
                    opcode = next(word for word in other.sass.split() if not word.startswith("@"))
                    assert opcode.split(".")[0] == spot.sass.split(".")[0], (name, spot.pc)
                    checked += 1
    assert checked > 100
