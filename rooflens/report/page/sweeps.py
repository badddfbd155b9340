"""Sweeps: the cases of a program on one GPU in the order of a size, as a table and a chart.

Reports of one program and type belong together where all that differs between them are sizes that rise together; the
numbered versions of a program are a sweep whatever their types. A dot is a sum over sums: FLOP of a
report's kernels over their bytes and over their time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from rooflens import format as fmt
from rooflens.model.predict.measured import Checked
from rooflens.model.records import Analysis, ratio
from rooflens.model.roofline.roofs import RoofLine, RoofSet, pipe_roofs
from rooflens.model.summary import identity
from rooflens.report.content import Content
from rooflens.report.kernel.predicted import LADDERS, sizes_text
from rooflens.report.plane.roofs import flat_roof, slope_roof
from rooflens.report.plane.simple import Dot, Drawn, plane_spec
from rooflens.report.templates import Drawing, render
from rooflens.report.words.labels import BOUND_LABELS

LEAST_STEPS = 2

CHOICES = frozenset(
    {"backward", "causal", "fused", "gather", "graph", "groups", "operation", "padded", "shared", "spilled", *LADDERS}
)
"""Parameters that choose what is done and not how much of it."""


class SweepCase(Struct, frozen=True):
    """One case of a sweep.

    Attributes:
        label: What tells it apart: `n = 128`, or the name of a ladder's step.
        short: The same where there is little room: `128`.
        keys: Keys of its launches that are drawn on the page, the longest first.
        checked: Its prediction with its measurement.
        cublas_share: Speed as a part of cuBLAS's at the same type, both without the profiler; None if not timed.
    """

    label: str
    short: str
    keys: tuple[str, ...]
    checked: Checked
    cublas_share: float | None = None

    @property
    def bound(self) -> str:
        """Class of the verdict that holds for most of its time."""
        limiter = self.checked.measured.limiter
        return limiter[0] if limiter else "unknown"

    @property
    def intensity_flop_per_byte(self) -> float | None:
        """FLOP over bytes at DRAM, of all its kernels; None if either is unknown."""
        return self.checked.measured.intensity_flop_per_byte

    @property
    def flop_per_s(self) -> float | None:
        """FLOP over time, of all its kernels."""
        return self.checked.measured.flop_per_s

    @property
    def predicted_intensity(self) -> float | None:
        """FLOP over compulsory bytes."""
        return ratio(self.checked.prediction.flop, self.checked.prediction.moved_bytes)

    @property
    def is_placed(self) -> bool:
        """True where it has a place in the plane."""
        return bool(self.intensity_flop_per_byte and self.flop_per_s)

    def roof_at(self, intensity: float | None) -> float | None:
        """Work out min(P, AI x BW) with its own peaks; None if one of them is unknown."""
        peak, bandwidth = self.checked.times.peak_per_s, self.checked.times.bandwidth_bytes_per_s
        return min(peak, intensity * bandwidth) if peak and bandwidth and intensity else None

    @property
    def roof_share(self) -> float | None:
        """Fraction that the case reaches of the roof at its intensity."""
        return ratio(self.flop_per_s, self.roof_at(self.intensity_flop_per_byte))


class Sweep(Struct, frozen=True):
    """The cases of a program on one GPU, in order.

    Attributes:
        varied: Name of the size that is varied.
        kept: Sizes that all cases share.
        memory: The page's roof of DRAM; None if no report holds one.
        pipes: The page's flat roofs of the pipes that did the work, the highest first.
    """

    operation: str
    dtypes: tuple[str, ...]
    gpu: str
    varied: str
    kept: Mapping[str, int]
    steps: tuple[SweepCase, ...]
    memory: RoofLine | None
    pipes: tuple[RoofLine, ...]

    @property
    def title(self) -> str:
        """Name it: `gemm, bf16: n = 128 to 8,192`, `gemm_ladder, fp32 and fp16: rung 1 to 8`."""
        first, last = self.steps[0], self.steps[-1]
        begin = f"{self.varied} {first.short}" if self.varied in LADDERS else first.label
        return f"{self.operation}, {' and '.join(self.dtypes)}: {begin} to {last.short}"

    @property
    def placed(self) -> tuple[SweepCase, ...]:
        """Cases with a place in the plane."""
        return tuple(step for step in self.steps if step.is_placed)

    @property
    def has_cublas(self) -> bool:
        """True where cuBLAS was timed beside a case."""
        return any(step.cublas_share is not None for step in self.steps)

    @property
    def ridges(self) -> tuple[tuple[RoofLine, float], ...]:
        """Each flat roof with the intensity from which it is the lower one."""
        return tuple((pipe, pipe.peak / self.memory.peak) for pipe in self.pipes) if self.memory else ()


class _Report(Struct, frozen=True):
    checked: Checked
    analyses: tuple[Analysis, ...]
    gpu: str
    keys: tuple[str, ...]
    cublas_share: float | None

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
    found = (_sweep(list(reports.values()), content.roofs) for reports in families.values())
    return tuple(sweep for sweep in found if sweep is not None and len(sweep.placed) >= LEAST_STEPS)


def _reports(content: Content) -> Iterator[_Report]:
    """Pair each prediction with its kernels; a report of several GPUs has no one place."""
    by_digest = {report.run.digest: report for report in content.reports}
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for launch in content.timed:
        keys[launch.analysis.kernel.digest].append(launch.key)
    for checked in content.predictions:
        report = by_digest[checked.digest]
        gpus = {identity(analysis)[0] for analysis in report.analyses}
        if checked.kernel is None and len(gpus) == 1:
            cublas_share = report.unprofiled.cublas_share if report.unprofiled else None
            yield _Report(checked, report.analyses, gpus.pop(), tuple(keys[checked.digest]), cublas_share)


def _sweep(reports: Sequence[_Report], roofs: Mapping[str, RoofSet]) -> Sweep | None:
    names = list(reports[0].parameters)
    varying = [name for name in names if len({report.parameters[name] for report in reports}) > 1]
    ordered = sorted(reports, key=lambda report: [report.parameters[name] for name in varying])
    rising = all(
        before.parameters[name] < after.parameters[name] for before, after in pairwise(ordered) for name in varying
    )
    if not varying or not rising:
        return None
    varied = _varied(ordered, varying)
    own = pipe_roofs(analysis for report in ordered for analysis in report.analyses)
    worked, page = {key for roof in own for key in roof.keys}, roofs.get(ordered[0].gpu, RoofSet())
    return Sweep(
        operation=ordered[0].checked.prediction.operation,
        dtypes=tuple(dict.fromkeys(report.checked.prediction.dtype for report in ordered)),
        gpu=ordered[0].gpu,
        varied=varied,
        kept={name: ordered[0].parameters[name] for name in names if name not in varying},
        steps=tuple(_sweep_case(report, varied) for report in ordered),
        memory=next((roof for roof in page.levels if "dram" in roof.keys), None),
        pipes=tuple(roof for roof in page.pipes if worked.intersection(roof.keys)),
    )


def _varied(reports: Iterable[_Report], varying: Sequence[str]) -> str:
    """Name the size that stands for all that vary: `n` where they are equal, else the first."""
    same = all(len({report.parameters[name] for name in varying}) == 1 for report in reports)
    return "n" if same and "n" in varying else varying[0]


def _sweep_case(report: _Report, varied: str) -> SweepCase:
    value = report.parameters[varied]
    case = report.checked.prediction.case
    if varied in LADDERS:
        name = case.partition("_")[2].replace("_", " ")
        label, short = f"{value} {name}".strip(), str(value)
    else:
        label, short = f"{varied} = {value:,}", f"{value:,}"
    return SweepCase(label, short, report.keys, report.checked, report.cublas_share)


DOT_PART = 0.2
"""Area of a dot as a part of the largest."""

MAX_SWEEPS = 12

HOW_TO_READ = (
    "One dot per case: its kernels' FLOPs over their DRAM bytes and over their time. A ring marks the predicted "
    "position: on the roof, at the intensity of the compulsory bytes. A dot to its left moved more bytes, one to its "
    "right fewer."
)


def _predicted(step: SweepCase) -> tuple[float, float] | None:
    intensity, roof = step.predicted_intensity, step.roof_at(step.predicted_intensity)
    return (intensity, roof) if intensity and roof else None


def _place_of(step: SweepCase) -> tuple[float, float]:
    return step.intensity_flop_per_byte or 1.0, step.flop_per_s or 1.0


def sweep_plane(sweep: Sweep, groups: Mapping[str, str] = MappingProxyType({})) -> Drawn:
    """Draw a sweep: a dot for each case along its path, and a ring where each was predicted.

    Args:
        sweep: Cases of a program, in order.
        groups: The kernel of each launch's key.
    """
    dots = tuple(_case_dot(step, groups) for step in sweep.placed)
    pairs = [(_place_of(step), ring) for step in sweep.placed if (ring := _predicted(step))]
    memory = sweep.memory
    return Drawn(
        sweep.title,
        dots,
        slopes=(slope_roof(memory, sweep.gpu),) if memory else (),
        flats=tuple(map(flat_roof, sweep.pipes)),
        paths=(tuple(_place_of(step) for step in sweep.placed),) if len(sweep.placed) > 1 else (),
        links=tuple(pairs),
        rings=tuple(ring for _, ring in pairs),
        ring_px2=60,
    )


def _case_dot(step: SweepCase, groups: Mapping[str, str]) -> Dot:
    x, y = _place_of(step)
    roof = step.roof_at(step.intensity_flop_per_byte)
    facts = {
        "Verdict": BOUND_LABELS[step.bound],
        "Intensity": fmt.intensity(step.intensity_flop_per_byte),
        "Predicted": fmt.intensity(step.predicted_intensity),
        "Achieved": fmt.si(step.flop_per_s, "FLOP/s"),
        "Its roof": f"{fmt.si(roof, 'FLOP/s')} ({fmt.percent(step.roof_share)} reached)"
        if roof
        else "not in the report",
        "Time": fmt.duration(step.checked.measured.time_ns),
    }
    keys = tuple(step.keys)
    group = groups.get(keys[0], "") if keys else ""
    return Dot(x, y, step.bound, step.label, step.short, DOT_PART, keys=keys, group=group, facts=facts)


def sweeps(page: Content) -> Markup:
    """Show the sweeps of a page; nothing if there is none, as on a page without predictions."""
    if not page.predictions:
        return Markup()
    found = find_sweeps(page)
    groups = {launch.key: launch.group_key for launch in page.launches}
    shown = [(sweep, _figure(f"sweep-{i}", sweep, page, groups)) for i, sweep in enumerate(found[:MAX_SWEEPS])]
    return render(
        "report/sweeps",
        shown=shown,
        left_out=len(found) - len(shown),
    )


def _figure(key: str, sweep: Sweep, page: Content, groups: Mapping[str, str]) -> Drawing:
    kept = sizes_text(sweep.kept)
    subtitle = f"{sweep.gpu}{f', {kept}' if kept else ''}", "Rings: predicted position of each case"
    title = f"{sweep.title}{': synthetic data' if page.synthetic else ''}"
    return Drawing(
        key,
        plane_spec(replace(sweep_plane(sweep, groups), title=title, subtitle=subtitle)),
        label=f"Path of {sweep.title} across the roofline of {sweep.gpu}; the table by it holds the same data.",
        save="",
        notes=(HOW_TO_READ,) if key == "sweep-0" else (),
        holder="the table holds its data",
    )
