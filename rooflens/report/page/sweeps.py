"""Sweeps: the cases of one program on one GPU, in the order of the size that is varied, one dot a case.

Reports of one program and type belong together where all that differs between them are sizes that rise together; a
ladder, whose steps are numbered, is a sweep whatever the types of its steps. A dot is a sum over sums: FLOP of a
report's kernels over their bytes and over their time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from rooflens.model.bounds import Bound
from rooflens.model.predict.measured import Checked
from rooflens.model.records import Analysis, ratio
from rooflens.model.roofline.roofs import Roof, level_roofs, pipe_roofs
from rooflens.model.summary import gpu_name
from rooflens.report.content import Content

LADDERS = frozenset({"rung"})
"""Parameters that number the steps of a ladder: versions of one program, one after the other."""

LEAST_STEPS = 2

CHOICES = frozenset({"backward", "causal", "fused", "gather", "graph", "groups", "operation", "padded", *LADDERS})
"""Parameters that choose what is done and not how much of it."""


class Step(Struct, frozen=True):
    """One case of a sweep.

    Attributes:
        label: What tells it apart: `n = 128`, or the name of a ladder's step.
        short: The same where there is little room: `128`.
        keys: Keys of its launches that are drawn on the page, the longest first.
        checked: Its prediction with its measurement.
    """

    label: str
    short: str
    keys: tuple[str, ...]
    checked: Checked

    @property
    def bound(self) -> Bound:
        """Class of the verdict that holds for most of its time."""
        limiter = self.checked.measured.limiter
        return limiter[0] if limiter else "unknown"

    @property
    def intensity_flop_per_byte(self) -> float | None:
        """FLOP over bytes at DRAM, of all its kernels; None where either is unknown."""
        return ratio(self.checked.measured.work, self.checked.measured.moved_bytes)

    @property
    def flop_per_s(self) -> float | None:
        """FLOP over time, of all its kernels."""
        per_ns = ratio(self.checked.measured.work, self.checked.measured.time_ns)
        return per_ns * 1e9 if per_ns is not None else None

    @property
    def predicted_intensity(self) -> float | None:
        """FLOP over compulsory bytes."""
        return ratio(self.checked.prediction.flop, self.checked.prediction.moved_bytes)

    @property
    def is_placed(self) -> bool:
        """True where it has a place in the plane."""
        return bool(self.intensity_flop_per_byte and self.flop_per_s)

    def roof_at(self, intensity: float | None) -> float | None:
        """Work out min(P, AI x BW) with its own peaks; None where one of them is unknown."""
        peak, bandwidth = self.checked.times.peak_per_s, self.checked.times.bandwidth_bytes_per_s
        return min(peak, intensity * bandwidth) if peak and bandwidth and intensity else None

    @property
    def roof_share(self) -> float | None:
        """Fraction that the case reaches of the roof at its intensity."""
        return ratio(self.flop_per_s, self.roof_at(self.intensity_flop_per_byte))


class Sweep(Struct, frozen=True):
    """The cases of one program on one GPU, in order.

    Attributes:
        varied: Name of the size that is varied.
        kept: Sizes that all cases share.
        memory: The roof of DRAM; None where no report holds one.
        pipes: The flat roofs of the pipes that did the work, the highest first.
    """

    operation: str
    dtypes: tuple[str, ...]
    gpu: str
    varied: str
    kept: Mapping[str, int]
    steps: tuple[Step, ...]
    memory: Roof | None
    pipes: tuple[Roof, ...]

    @property
    def title(self) -> str:
        """Name it: `gemm, bf16: n = 128 to 8,192`, `gemm_ladder, fp32 and fp16: rung 1 to 8`."""
        first, last = self.steps[0], self.steps[-1]
        begin = f"{self.varied} {first.short}" if self.varied in LADDERS else first.label
        return f"{self.operation}, {' and '.join(self.dtypes)}: {begin} to {last.short}"

    @property
    def placed(self) -> tuple[Step, ...]:
        """Cases with a place in the plane."""
        return tuple(step for step in self.steps if step.is_placed)

    @property
    def ridges(self) -> tuple[tuple[Roof, float], ...]:
        """Each flat roof with the intensity from which it is the lower one."""
        return tuple((pipe, pipe.peak / self.memory.peak) for pipe in self.pipes) if self.memory else ()


class _Report(Struct, frozen=True):
    """One report of a sweep in the making."""

    checked: Checked
    analyses: tuple[Analysis, ...]
    gpu: str
    keys: tuple[str, ...]

    @property
    def parameters(self) -> Mapping[str, int]:
        return self.checked.prediction.parameters

    @property
    def family(self) -> Hashable:
        """What the cases of one sweep have in common."""
        prediction = self.checked.prediction
        is_ladder = bool(LADDERS & prediction.parameters.keys())
        choices = tuple((name, value) for name, value in self.parameters.items() if name in CHOICES - LADDERS)
        return self.gpu, prediction.operation, "" if is_ladder else prediction.dtype, choices


def find_sweeps(content: Content) -> tuple[Sweep, ...]:
    """Find the sweeps of a page, in the order of their reports; of equal cases the first report counts."""
    families: defaultdict[Hashable, dict[tuple[int, ...], _Report]] = defaultdict(dict)
    for report in _reports(content):
        families[report.family].setdefault(tuple(report.parameters.values()), report)
    found = (_sweep(list(reports.values())) for reports in families.values())
    return tuple(sweep for sweep in found if sweep is not None and len(sweep.placed) >= LEAST_STEPS)


def _reports(content: Content) -> Iterator[_Report]:
    """Pair each prediction with its kernels; a report of several GPUs has no one place."""
    by_digest = {report.run.digest: report.analyses for report in content.reports}
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for launch in content.timed:
        keys[launch.analysis.kernel.digest].append(launch.key)
    for checked in content.predictions:
        analyses = by_digest[checked.digest]
        gpus = {gpu_name(analysis) for analysis in analyses}
        if checked.kernel is None and len(gpus) == 1:
            yield _Report(checked, analyses, gpus.pop(), tuple(keys[checked.digest]))


def _sweep(reports: Sequence[_Report]) -> Sweep | None:
    """Put the cases of one family in order; None if they are not a sweep."""
    names = list(reports[0].parameters)
    varying = [name for name in names if len({report.parameters[name] for report in reports}) > 1]
    ordered = sorted(reports, key=lambda report: [report.parameters[name] for name in varying])
    rising = all(
        before.parameters[name] < after.parameters[name] for before, after in pairwise(ordered) for name in varying
    )
    if not varying or not rising:
        return None
    varied = _varied(ordered, varying)
    analyses = [analysis for report in ordered for analysis in report.analyses]
    return Sweep(
        operation=ordered[0].checked.prediction.operation,
        dtypes=tuple(dict.fromkeys(report.checked.prediction.dtype for report in ordered)),
        gpu=ordered[0].gpu,
        varied=varied,
        kept={name: ordered[0].parameters[name] for name in names if name not in varying},
        steps=tuple(_step(report, varied) for report in ordered),
        memory=next((roof for roof in level_roofs(analyses) if "dram" in roof.keys), None),
        pipes=pipe_roofs(analyses),
    )


def _varied(reports: Iterable[_Report], varying: Sequence[str]) -> str:
    """Name the size that stands for all that vary: `n` where they are equal, else the first."""
    same = all(len({report.parameters[name] for name in varying}) == 1 for report in reports)
    return "n" if same and "n" in varying else varying[0]


def _step(report: _Report, varied: str) -> Step:
    value = report.parameters[varied]
    case = report.checked.prediction.case
    if varied in LADDERS:
        name = case.partition("_")[2].replace("_", " ")
        return Step(f"{value} {name}".strip(), str(value), report.keys, report.checked)
    return Step(f"{varied} = {value:,}", f"{value:,}", report.keys, report.checked)
