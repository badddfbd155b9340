"""Check what is asked of NVIDIA's module after reading, and what happens to the reports if it dies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.ncu_rep_writer import Instances, KernelSpec, ReportSpec, encode_report

from rooflens.errors import EnvironmentMissingError, InputError
from rooflens.ingest.metrics.code import Code
from rooflens.ingest.reports import texts
from rooflens.ingest.reports.read import ReadOptions, read_bytes
from rooflens.ingest.reports.report import Report
from rooflens.ingest.reports.texts import Asked, TextsAndCode, add_texts

TABLE = Instances({0x1000 + 16 * number: 1.0 + number for number in range(9)}, 45.0)
OPTIONS = ReadOptions(texts_later=True)
FOUND = Code(totals={"warp_inst": 7.0})


@pytest.fixture
def reports() -> list[tuple[Path, Report]]:
    """Return three reports whose code only NVIDIA's module may read, and one without code."""
    metrics: list[dict[str, Any]] = [{"inst_executed": TABLE, "m": number} for number in range(3)] + [{"m": 3}]
    data = [encode_report(ReportSpec([KernelSpec("kernel()", one)])) for one in metrics]
    return [(Path(f"{number}.ncu-rep"), read_bytes(one, str(number))) for number, one in enumerate(data)]


def _child(calls: list[list[str]], killer: str = "") -> Any:
    """Stand in for the child: it dies at one report, whatever else it was asked."""

    def in_child(_: object, asked: Sequence[Asked], deadline_s: float) -> list[TextsAndCode]:
        calls.append([str(one.path) for one in asked])
        assert deadline_s == OPTIONS.deadline_s * len(asked)
        if killer in calls[-1]:
            raise InputError("NVIDIA's reader ended with SIGSEGV")
        return [TextsAndCode({}, dict.fromkeys(one.unlisted, FOUND)) for one in asked]

    return in_child


def test_one_child_tells_of_all_reports(reports: list[tuple[Path, Report]], monkeypatch: pytest.MonkeyPatch) -> None:
    """One child process is asked about all reports that need it, and its answers are in their kernels."""
    calls: list[list[str]] = []
    monkeypatch.setattr(texts, "in_child", _child(calls))
    done = add_texts(reports, OPTIONS)
    assert calls == [["0.ncu-rep", "1.ncu-rep", "2.ncu-rep"]]
    assert [one.kernels[0].code_totals for one in done] == [{"warp_inst": 7.0}] * 3 + [{}]
    assert not any(one.notes or one.unlisted or one.untold for one in done)


def test_a_report_that_kills_the_child_costs_its_own_text(
    reports: list[tuple[Path, Report]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a death each report is asked about alone: only the cause lacks its text, and a note says so."""
    calls: list[list[str]] = []
    monkeypatch.setattr(texts, "in_child", _child(calls, killer="1.ncu-rep"))
    done = add_texts(reports, OPTIONS)
    assert calls[1:] == [["0.ncu-rep"], ["1.ncu-rep"], ["2.ncu-rep"]]
    assert [one.kernels[0].code_totals.get("warp_inst") for one in done] == [7.0, 45.0, 7.0, None]
    assert [len(one.notes) for one in done] == [0, 1, 0, 0]
    assert done[1].notes == ("SASS text and source lines are missing: NVIDIA's reader ended with SIGSEGV",)


def test_without_the_module_reports_are_read_and_a_note_says_so(
    reports: list[tuple[Path, Report]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where NVIDIA's module is not installed, all reports keep what was read of them, with one and the same note."""

    def in_child(*_: object, **__: object) -> None:
        raise EnvironmentMissingError("`ncu-report` is not installed")

    monkeypatch.setattr(texts, "in_child", in_child)
    done = add_texts(reports, OPTIONS)
    assert [one.kernels for one in done] == [one.kernels for _, one in reports]
    note = "SASS text and source lines are missing: `ncu-report` is not installed"
    assert [one.notes for one in done] == [(note,), (note,), (note,), ()]


def test_the_module_is_not_asked_where_it_must_not_be(
    reports: list[tuple[Path, Report]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--reader direct`, the module is not asked, and a note says what is missing."""
    calls: list[list[str]] = []
    monkeypatch.setattr(texts, "in_child", _child(calls))
    done = add_texts(reports, ReadOptions(reader="direct"))
    assert calls == []
    assert {one.notes for one in done[:3]} == {
        ("SASS text and source lines are missing: NVIDIA's module was not asked",)
    }
