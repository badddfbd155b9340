"""Judge the kernels of reports against requirements: a share of a roof, a time, a limiter, no regression.

The pytest plugin is built on it. An unmet requirement is returned as text with the kernel's verdict and first move; a
value that was not measured does not meet its requirement.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.analyzing import analyze_paths
from rooflens.errors import InputError, UnknownNameError
from rooflens.format import cut_name, duration, percent, plain_name, printable
from rooflens.model.bounds import BOUNDS
from rooflens.model.compare.compare import DEFAULT_THRESHOLD
from rooflens.model.compare.gate import DEFAULT_FLOOR_NS, Gate, parse_per_cent
from rooflens.model.compare.pairing import compare_pairs, pair_programs
from rooflens.model.compare.sentences import limiter_sentence
from rooflens.model.records import timed
from rooflens.model.selecting import Chooser, Selection, select
from rooflens.model.summary import first_move, median_launch, place_of_move
from rooflens.model.verdict.sentences import resource_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from rooflens.model.records import Analysis, AnalyzedReport

NAME_WIDTH = 100


class Wanted(Struct, frozen=True, kw_only=True):
    """Requirements on kernels; each one that is not None must hold.

    Attributes:
        kernel: Which kernels, as `rooflens.model.selecting` reads it: a part of a name, a glob over the whole of one
            (`adamw*`), `re:` and a regular expression, or the key of a launch; all by default.
        level: Memory level (`dram`, `l2`, `l1`, `smem`) or pipe (`fp32`, `tensor_bf16`) whose share is meant; by
            default the busiest unit.
        min_share: Smallest share of that peak, 0 to 1.
        max_us: Longest mean launch, in microseconds; with several recordings their median.
        bound: Class of the verdict: memory, compute, latency, overhead, balanced.
        base: Reports to compare with, as `rooflens compare` takes them.
        fail_on: Fraction that the time may grow by, beyond noise: 0.05 or `"5%"`; goes with `base`.
        floor_us: Microseconds that must be lost as well; by default the floor of `rooflens compare`.
    """

    kernel: str | None = None
    level: str | None = None
    min_share: float | None = None
    max_us: float | None = None
    bound: str | None = None
    base: str | Path | None = None
    fail_on: float | str | None = None
    floor_us: float | None = None

    @property
    def selection(self) -> Selection:
        """Which kernels to judge."""
        return Selection(kernel=() if self.kernel is None else (self.kernel,))


def check(wanted: Wanted) -> None:
    """Refuse requirements that make no sense.

    Raises:
        InputError: Nothing is required, or a value that nothing can meet.
        UsageError: The pattern of kernels or `fail_on` cannot be read.
    """
    asked = (wanted.min_share, wanted.max_us, wanted.bound, wanted.fail_on)
    if all(one is None for one in asked):
        raise InputError("no requirement is given", 'for example `min_share=0.7, level="dram"` or `max_us=120`')
    if wanted.min_share is not None and not (isinstance(wanted.min_share, (int, float)) and 0 < wanted.min_share <= 1):
        raise InputError(f"min_share is a fraction between 0 and 1, not {wanted.min_share!r}", "70 % is 0.7")
    if wanted.max_us is not None and not wanted.max_us > 0:
        raise InputError(f"max_us is a time in microseconds, not {wanted.max_us!r}")
    if wanted.bound is not None and wanted.bound not in BOUNDS:
        raise UnknownNameError("verdict", str(wanted.bound), BOUNDS)
    if (wanted.base is None) != (wanted.fail_on is None):
        raise InputError("base and fail_on go together", 'for example `base="baseline/", fail_on=0.05`')
    if wanted.fail_on is not None:
        parse_per_cent(wanted.fail_on, "fail_on")
    Chooser(wanted.selection)


def unmet(paths: Sequence[str | Path], wanted: Wanted, note: Callable[[str], None] = lambda _: None) -> list[str]:
    """Return a text for each requirement that a kernel of some reports does not meet; empty where all are met.

    Args:
        paths: Reports and folders of them: recordings of one program or several.
        wanted: The requirements.
        note: Takes what is let through although it cannot be judged, in words.

    Raises:
        InputError: A report cannot be read, no kernel matches, or the requirements make no sense.
        UsageError: The pattern of kernels cannot be read.
    """
    check(wanted)
    chosen = _read(paths, wanted.selection)
    if not any(report.analyses for report in chosen):
        return ["the report holds no kernel"]
    kernels = list(_kernels(chosen))
    found = [text for one in kernels for text in one.unmet(wanted)]
    return found if wanted.base is None else [*found, *_slower(chosen, wanted, note)]


class _Kernel(Struct, frozen=True):
    """One kernel of the reports.

    Attributes:
        median: The median launch of all recordings.
        launches: How many launches the profiled ones stand for.
        mean_launch_ns: Time of the mean launch, the median over the recordings; None where a launch was not timed.
    """

    median: Analysis
    launches: int
    mean_launch_ns: float | None

    def unmet(self, wanted: Wanted) -> Iterator[str]:
        verdict = self.median.verdict
        if self.median.kernel.failed:
            yield self._said(f"could not be judged: {self.median.kernel.status_reason or 'it failed'}")
            return
        if wanted.min_share is not None:
            share, unit = self._share(wanted.level)
            if share is None:
                asked = f"of which at least {percent(wanted.min_share)} is required"
                yield self._said(f"was not measured at {unit}, {asked}{self._measured()}")
            elif share < wanted.min_share:
                yield self._said(
                    f"reaches {percent(share)} of {unit}; at least {percent(wanted.min_share)} is required"
                )
        if wanted.max_us is not None:
            most = duration(wanted.max_us * 1e3)
            if self.mean_launch_ns is None:
                yield self._said(f"was not timed; at most {most} is required")
            elif self.mean_launch_ns > wanted.max_us * 1e3:
                launches = ", mean launch" if self.launches > 1 else ""
                yield self._said(f"takes {duration(self.mean_launch_ns)}{launches}; at most {most} is required")
        if wanted.bound is not None and verdict.bound != wanted.bound:
            yield self._said(f"is {verdict.bound}-bound; {wanted.bound}-bound is required")

    def _share(self, level: str | None) -> tuple[float | None, str]:
        """Return the share of the unit's peak, and what the unit is called."""
        if level is None:
            nearest = self.median.verdict.bottleneck
            return (nearest.share, _label(nearest.resource, self.median)) if nearest else (None, "any unit")
        place = self.median.levels.get(level) or self.median.pipes.get(level)
        return (place.share if place else None), _label(level, self.median)

    def _measured(self) -> str:
        """Name the levels and pipes that were measured."""
        levels = (name for name, level in self.median.levels.items() if level.share is not None)
        pipes = (name for name, pipe in self.median.pipes.items() if pipe.share is not None)
        known = [*levels, *pipes]
        return f"; it was at {', '.join(known)}" if known else ""

    def _said(self, what: str) -> str:
        kernel = self.median.kernel
        place = place_of_move(self.median)
        lines = (
            f"{cut_name(plain_name(kernel.name), NAME_WIDTH)} {what}",
            f"  verdict: {limiter_sentence(self.median)}",
            f"  first move: {first_move(self.median)}{f' ({place})' if place else ''}",
            f"  report: {kernel.source}, result {kernel.index}",
        )
        return "\n".join(printable(line, "?") for line in lines)


def _label(resource: str | None, analysis: Analysis) -> str:
    return resource_label(resource, analysis.kernel.gpu) if resource else "its busiest unit"


def _read(paths: Iterable[str | Path], selection: Selection) -> Sequence[AnalyzedReport]:
    found = analyze_paths(paths)
    for source, error in found.failures:
        raise InputError(f"{source}: {error}", error.hint)
    return select(found.reports, selection)


def _kernels(reports: Sequence[AnalyzedReport]) -> Iterator[_Kernel]:
    """Sum up the launches of each kernel; failed ones are kept separate."""
    recordings: defaultdict[tuple[str, str | None], list[list[Analysis]]] = defaultdict(list)
    for report in reports:
        of_report: defaultdict[tuple[str, str | None], list[Analysis]] = defaultdict(list)
        for one in timed(report.analyses):
            of_report[one.kernel.name, one.kernel.gpu].append(one)
        for key, analyses in of_report.items():
            recordings[key].append(analyses)
        yield from (_Kernel(one, one.launches, None) for one in report.analyses if one.kernel.failed)
    for found in recordings.values():
        every = [one for analyses in found for one in analyses]
        mean_ns = None
        if all(one.gpu_time_ns is not None for one in every):
            mean_ns = median(
                sum(one.gpu_time_ns or 0.0 for one in analyses) / sum(one.launches for one in analyses)
                for analyses in found
            )
        yield _Kernel(median_launch(every), sum(one.launches for one in every), mean_ns)


def _slower(head: Sequence[AnalyzedReport], wanted: Wanted, note: Callable[[str], None]) -> Iterator[str]:
    """Compare the reports with the base, as the gate of `compare` does with a floor and for each kernel.

    Raises:
        InputError: The base cannot be read, share no program, or were not collected alike.
    """
    base = _read([str(wanted.base)], wanted.selection)
    floor_ns = DEFAULT_FLOOR_NS if wanted.floor_us is None else wanted.floor_us * 1e3
    pairs = pair_programs(base, head, ("base", "head")).pairs
    hint = "record both sides alike: the same GPU, clocks and counters"
    compared = compare_pairs(pairs, DEFAULT_THRESHOLD, anyway=False, hint=hint)
    gated = Gate(parse_per_cent(wanted.fail_on or 0.0, "fail_on"), per_kernel=True, floor_ns=floor_ns).judge(compared)
    yield from map(printable, gated.failures)
    # As in CI: a difference that a single run may have passes with a note; without a time nothing is known.
    for one in gated.unjudged_totals:
        if one.outcome == "single":
            note(printable(one.unjudged))
        else:
            yield printable(one.unjudged)
