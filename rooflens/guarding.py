"""Write many kernels: one that meets a bug on the way is written as failed, and does not affect the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from rooflens.errors import RooflensError
from rooflens.model.analyze import analyze
from rooflens.model.failed import blame, bug_error, bug_reason, failed_kernel
from rooflens.model.records import Outside

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflens.model.records import AnalyzedReport
    from rooflens.model.verdict.thresholds import Thresholds

T = TypeVar("T")
Reports = tuple["AnalyzedReport", ...]
Place = tuple[int, int]
"""Position of a report, and of a kernel in it."""


def write_all(reports: Reports, limits: Thresholds, write: Callable[[Reports], T]) -> T:
    """Write reports with `write`; kernels that it cannot write become failed ones.

    Args:
        reports: All that is to be written.
        limits: Thresholds of the verdicts.
        write: Writes some reports; it may be called several times.

    Returns:
        What `write` returned for all reports, in which kernels that it cannot write are failed ones.

    Raises:
        InputError: Writing fails for a reason that is no single kernel's.
    """
    try:
        return write(reports)
    except RooflensError:
        raise
    except Exception as error:
        sound = _without_culprits(reports, limits, write)
        if sound is None:
            raise bug_error(error) from error
    try:
        return write(sound)
    except RooflensError:
        raise
    except Exception as error:
        raise bug_error(error) from error


def _without_culprits(reports: Reports, limits: Thresholds, write: Callable[[Reports], object]) -> Reports | None:
    """Return the reports with the kernels that cannot be written as failed ones; None where there are none."""
    places = [(i, j) for i, report in enumerate(reports) for j in range(len(report.analyses))]
    found = dict(blame(places, lambda some: write(_only(reports, some))))
    if not found:
        return None
    analyses = [list(report.analyses) for report in reports]
    for (i, j), error in found.items():
        culprit = analyses[i][j]
        failed = failed_kernel(culprit.kernel, bug_reason(error))
        analyses[i][j] = analyze(failed, limits, Outside(key=culprit.key))
    return tuple(replace(report, analyses=tuple(all_of)) for report, all_of in zip(reports, analyses, strict=True))


def _only(reports: Reports, places: Sequence[Place]) -> Reports:
    """Keep some kernels, and the reports that hold them."""
    kept: dict[int, list[int]] = {}
    for i, j in places:
        kept.setdefault(i, []).append(j)
    return tuple(
        replace(reports[i], analyses=tuple(reports[i].analyses[j] for j in positions)) for i, positions in kept.items()
    )
