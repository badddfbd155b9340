"""Nothing that is written of many kernels is lost because of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.kernels import make_kernel

from rooflens.errors import InputError, UsageError
from rooflens.guarding import write_all
from rooflens.model.analyze import analyze
from rooflens.model.failed import blame
from rooflens.model.records import AnalyzedReport, Run
from rooflens.model.verdict.thresholds import default_thresholds

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMITS = default_thresholds()


def reports(*sizes: int) -> tuple[AnalyzedReport, ...]:
    """Make reports of so many kernels, named by report and position: 0.0, 0.1, ..."""
    return tuple(
        AnalyzedReport(
            Run(digest=f"{i}", source=f"{i}.ncu-rep", file_bytes=1, kernel_count=size, synthetic=True),
            tuple(analyze(make_kernel(name=f"{i}.{j}"), LIMITS) for j in range(size)),
        )
        for i, size in enumerate(sizes)
    )


@pytest.mark.parametrize("bad", [{"0.0"}, {"1.2"}, {"0.1", "1.0", "2.0"}, {"0.0", "0.1", "0.2"}])
def test_kernels_that_cannot_be_written_are_written_as_failed(bad: set[str]) -> None:
    """All others come out as they are, and each culprit says what it met and where."""

    def write(some: Sequence[AnalyzedReport]) -> Sequence[AnalyzedReport]:
        for report in some:
            for analysis in report.analyses:
                if analysis.kernel.name in bad and not analysis.kernel.failed:
                    raise OverflowError("int too large")
        return some

    given = reports(3, 4, 1)
    written = write_all(given, LIMITS, write)
    pairs = [
        (old, new)
        for before, after in zip(given, written, strict=True)
        for old, new in zip(before.analyses, after.analyses, strict=True)
    ]
    assert {new.kernel.name for _, new in pairs if new.kernel.failed} == bad
    assert all(new is old for old, new in pairs if old.kernel.name not in bad)
    for _, new in pairs:
        if new.kernel.failed:
            assert "OverflowError at test_guarding.py:" in (new.kernel.status_reason or "")
            assert "not_analyzed" in new.flags


def test_what_no_kernel_is_to_blame_for_is_an_error_that_asks_for_a_report() -> None:
    """A writer that fails by itself ends with one line, not with a traceback."""

    def write(some: Sequence[AnalyzedReport]) -> None:
        if sum(len(report.analyses) for report in some) > 1:
            raise ZeroDivisionError

    with pytest.raises(InputError, match="ZeroDivisionError at test_guarding") as caught:
        write_all(reports(2, 2), LIMITS, write)
    assert "please report" in caught.value.hint


def test_errors_of_users_are_theirs() -> None:
    """A file that cannot be written is no bug of a kernel."""

    def write(_: object) -> None:
        raise UsageError("no")

    with pytest.raises(UsageError, match="no"):
        write_all(reports(2), LIMITS, write)


def test_a_culprit_that_some_neighbour_hides_is_found() -> None:
    """Neither half of the three fails, as 2 does no harm right after 1."""

    def attempt(items: Sequence[int]) -> None:
        if 2 in items and list(items) != [1, 2]:
            raise ValueError

    assert [culprit for culprit, _ in blame([0, 2, 1], attempt)] == [2]
    assert [culprit for culprit, _ in blame([0, 1, 2], attempt)] == [2]


def test_culprits_are_found_by_halves() -> None:
    """One of a thousand takes some twenty attempts, not a thousand."""
    tried: list[int] = []

    def attempt(items: Sequence[int]) -> None:
        tried.append(len(items))
        if 617 in items:
            raise ValueError

    ((culprit, _),) = blame(range(1000), attempt)
    assert culprit == 617
    assert len(tried) < 25
