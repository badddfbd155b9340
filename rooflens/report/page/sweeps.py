"""Sweeps and ladders: the cases of a program on one GPU in the order of a size, as a table and a chart.

Reports of one program and type belong together where all that differs between them are sizes that rise together; a
ladder, whose steps are numbered, is a sweep whatever the types of its steps. A dot is a sum over sums: FLOP of a
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
from rooflens.model.records import LEVELS, Analysis, AnalyzedReport, ratio, timed
from rooflens.model.roofline.roofs import RoofLine, RoofSet, pipe_roofs
from rooflens.model.summary import identity
from rooflens.report.content import Content
from rooflens.report.kernel.predicted import LADDERS, sizes_text
from rooflens.report.plane.marks import Spec
from rooflens.report.plane.roofs import flat_roof, slope_roof
from rooflens.report.plane.simple import Dot, Drawn, plane_spec
from rooflens.report.templates import Drawing, render
from rooflens.report.words.labels import BOUND_LABELS

LEAST_STEPS = 2

CHOICES = frozenset(
    {"backward", "causal", "fused", "gather", "graph", "groups", "operation", "padded", "shared", "spilled", *LADDERS}
)
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
    steps: tuple[Step, ...]
    memory: RoofLine | None
    pipes: tuple[RoofLine, ...]

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
    def ridges(self) -> tuple[tuple[RoofLine, float], ...]:
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
    found = (_sweep(list(reports.values()), content.roofs) for reports in families.values())
    return tuple(sweep for sweep in found if sweep is not None and len(sweep.placed) >= LEAST_STEPS)


def _reports(content: Content) -> Iterator[_Report]:
    """Pair each prediction with its kernels; a report of several GPUs has no one place."""
    by_digest = {report.run.digest: report.analyses for report in content.reports}
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for launch in content.timed:
        keys[launch.analysis.kernel.digest].append(launch.key)
    for checked in content.predictions:
        analyses = by_digest[checked.digest]
        gpus = {identity(analysis)[0] for analysis in analyses}
        if checked.kernel is None and len(gpus) == 1:
            yield _Report(checked, analyses, gpus.pop(), tuple(keys[checked.digest]))


def _sweep(reports: Sequence[_Report], roofs: Mapping[str, RoofSet]) -> Sweep | None:
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
    own = pipe_roofs(analysis for report in ordered for analysis in report.analyses)
    worked, page = {key for roof in own for key in roof.keys}, roofs.get(ordered[0].gpu, RoofSet())
    return Sweep(
        operation=ordered[0].checked.prediction.operation,
        dtypes=tuple(dict.fromkeys(report.checked.prediction.dtype for report in ordered)),
        gpu=ordered[0].gpu,
        varied=varied,
        kept={name: ordered[0].parameters[name] for name in names if name not in varying},
        steps=tuple(_step(report, varied) for report in ordered),
        memory=next((roof for roof in page.levels if "dram" in roof.keys), None),
        pipes=tuple(roof for roof in page.pipes if worked.intersection(roof.keys)),
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


_ISSUE = "issue"


class Unit(Struct, frozen=True):
    """A memory level, the issue slots, or a pipe: one column of a ladder."""

    name: str
    is_memory: bool


class Rung(Struct, frozen=True):
    """One version of the program.

    Attributes:
        cublas_share: Speed as a part of cuBLAS's at the same type, both without the profiler; None if not timed.
        time_ns: Kernel time of one iteration without the profiler; None if not timed.
        step_up: How much faster it is than the rung before, without the profiler; None for the first.
        shares: Busy part of each unit by its name, weighted by time; None if the report does not tell.
        busiest: The unit that its longest kernel is said to keep busiest; None if no share is known.
        roof: The unit whose roof is above it in the plane.
    """

    step: Step
    cublas_share: float | None
    time_ns: float | None
    step_up: float | None
    shares: Mapping[str, float | None]
    busiest: str | None
    roof: str | None


class Ladder(Struct, frozen=True):
    """All versions of a program, in order."""

    units: tuple[Unit, ...]
    rungs: tuple[Rung, ...]

    @property
    def has_cublas(self) -> bool:
        """True where cuBLAS was timed for a rung."""
        return any(rung.cublas_share is not None for rung in self.rungs)

    @property
    def is_timed(self) -> bool:
        """True where a rung was timed without the profiler."""
        return any(rung.time_ns is not None for rung in self.rungs)

    @property
    def longest_share(self) -> float:
        """The largest part of cuBLAS's speed, at least 1: the length of the longest bar."""
        return max(1.0, *(rung.cublas_share or 0.0 for rung in self.rungs))

    @property
    def way(self) -> tuple[str, ...]:
        """The busiest units in the order in which they take over."""
        busiest = [rung.busiest for rung in self.rungs if rung.busiest is not None]
        return tuple(name for at, name in enumerate(busiest) if at == 0 or busiest[at - 1] != name)


def ladder_of(sweep: Sweep, content: Content) -> Ladder | None:
    """Read a sweep as a ladder; None if its cases are not versions of a program."""
    if sweep.varied not in LADDERS:
        return None
    reports = {report.run.digest: report for report in content.reports}
    mine = [reports[step.checked.digest] for step in sweep.steps]
    units = _units([analysis for report in mine for analysis in timed(report.analyses)])
    rungs: list[Rung] = []
    for step, report in zip(sweep.steps, mine, strict=True):
        rungs.append(_rung(step, report, units, sweep, rungs[-1] if rungs else None))
    return Ladder(units, tuple(rungs))


def _units(analyses: Sequence[Analysis]) -> tuple[Unit, ...]:
    """Choose the columns: levels from the far one to the near one, issue slots, what is busiest, what did the work."""
    memory = [Unit(name, is_memory=True) for name in LEVELS if any(a.levels[name].share is not None for a in analyses)]
    busiest = [a.verdict.bottleneck.resource for a in analyses if a.verdict.bottleneck is not None]
    work = [name for a in analyses for name, pipe in a.pipes.items() if pipe.is_arithmetic and pipe.amount]
    issue = [_ISSUE] if any(_share(a, _ISSUE) is not None for a in analyses) else []
    others = [name for name in busiest if name is not None and name not in LEVELS and name not in work]
    return (*memory, *(Unit(name, is_memory=False) for name in dict.fromkeys([*issue, *others, *work])))


def _rung(step: Step, report: AnalyzedReport, units: Sequence[Unit], sweep: Sweep, before: Rung | None) -> Rung:
    run = report.unprofiled
    time_ns = run.kernel_ns / run.iterations if run is not None and run.kernel_ns else None
    shares = {unit.name: _mean(timed(report.analyses), unit.name) for unit in units}
    return Rung(
        step=step,
        cublas_share=run.cublas_share if run is not None else None,
        time_ns=time_ns,
        step_up=ratio(before.time_ns, time_ns) if before is not None else None,
        shares=shares,
        busiest=_busiest(timed(report.analyses)),
        roof=_roof(step, sweep),
    )


def _mean(analyses: Iterable[Analysis], name: str) -> float | None:
    """Weight a unit's share by the time of the kernels; None if one of them does not tell."""
    parts = [(_share(analysis, name), analysis.gpu_time_ns or 0.0) for analysis in analyses]
    total_ns = sum(time_ns for _, time_ns in parts)
    if not total_ns or any(share is None for share, _ in parts):
        return None
    return sum((share or 0.0) * time_ns for share, time_ns in parts) / total_ns


def _busiest(analyses: Iterable[Analysis]) -> str | None:
    longest = max(analyses, key=lambda analysis: analysis.gpu_time_ns or 0.0, default=None)
    found = longest.verdict.bottleneck if longest is not None else None
    return found.resource if found is not None else None


def _share(analysis: Analysis, name: str) -> float | None:
    if name in analysis.levels:
        return analysis.levels[name].share
    return analysis.pipes[name].share if name in analysis.pipes else None


def _roof(step: Step, sweep: Sweep) -> str | None:
    """Name what bounds it at its intensity: DRAM left of the ridge of its pipe, that pipe right of it."""
    roof, times = step.roof_at(step.intensity_flop_per_byte), step.checked.times
    if roof is None or sweep.memory is None:
        return None
    return "dram" if roof != times.peak_per_s else times.pipe


DOT_PART = 0.2
"""Area of a dot as a part of the largest."""

MAX_SWEEPS = 12

HOW_TO_READ = (
    "One dot per case: its kernels' FLOPs over their DRAM bytes and over their time. A ring marks the predicted "
    "position: on the roof, at the intensity of the compulsory bytes. A dot to its left moved more bytes, one to its "
    "right fewer."
)


def _predicted(step: Step) -> tuple[float, float] | None:
    intensity, roof = step.predicted_intensity, step.roof_at(step.predicted_intensity)
    return (intensity, roof) if intensity and roof else None


def _place_of(step: Step) -> tuple[float, float]:
    return step.intensity_flop_per_byte or 1.0, step.flop_per_s or 1.0


def sweep_plane(sweep: Sweep, groups: Mapping[str, str] = MappingProxyType({})) -> Drawn:
    """Draw a sweep: a dot for each case along its path, and a ring where each was predicted.

    Args:
        sweep: Cases of a program, in order.
        groups: The kernel of each launch's key.
    """
    dots = tuple(_dot(step, groups) for step in sweep.placed)
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


def _dot(step: Step, groups: Mapping[str, str]) -> Dot:
    x, y = _place_of(step)
    facts = {
        "Verdict": BOUND_LABELS[step.bound],
        "Intensity": fmt.intensity(step.intensity_flop_per_byte),
        "Predicted": fmt.intensity(step.predicted_intensity),
        "Achieved": fmt.si(step.flop_per_s, "FLOP/s"),
        "Its roof": _roof_text(step),
        "Time": fmt.duration(step.checked.measured.time_ns),
    }
    keys = tuple(step.keys)
    group = groups.get(keys[0], "") if keys else ""
    return Dot(x, y, step.bound, step.label, step.short, DOT_PART, keys=keys, group=group, facts=facts)


def _roof_text(step: Step) -> str:
    roof = step.roof_at(step.intensity_flop_per_byte)
    return f"{fmt.si(roof, 'FLOP/s')} ({fmt.percent(step.roof_share)} reached)" if roof else "not in the report"


def sweep_spec(sweep: Sweep, *, title: str, subtitle: Sequence[str], groups: Mapping[str, str]) -> Spec:
    """Specify the plane of a sweep; the page sets `picked`, the key of a launch."""
    return plane_spec(replace(sweep_plane(sweep, groups), title=title, subtitle=tuple(subtitle)))


def sweeps(page: Content) -> Markup:
    """Show the sweeps of a page; nothing if there is none, as on a page without predictions."""
    if not page.predictions:
        return Markup()
    found = find_sweeps(page)
    groups = {launch.key: launch.group_key for launch in page.launches}
    shown = [(sweep, _figure(f"sweep-{i}", sweep, page, groups)) for i, sweep in enumerate(found[:MAX_SWEEPS])]
    return render(
        "report/sweeps",
        shown=[(sweep, figure, ladder_of(sweep, page)) for sweep, figure in shown],
        left_out=len(found) - len(shown),
    )


def _figure(key: str, sweep: Sweep, page: Content, groups: Mapping[str, str]) -> Drawing:
    kept = sizes_text(sweep.kept)
    subtitle = f"{sweep.gpu}{f', {kept}' if kept else ''}", "Rings: predicted position of each case"
    title = f"{sweep.title}{': synthetic data' if page.synthetic else ''}"
    return Drawing(
        key,
        sweep_spec(sweep, title=title, subtitle=subtitle, groups=groups),
        label=f"Path of {sweep.title} across the roofline of {sweep.gpu}; the table by it holds the same data.",
        save="",
        notes=(HOW_TO_READ,) if key == "sweep-0" else (),
        holder="the table holds its data",
    )
