"""A profiled launch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Unpack, get_args

from msgspec.structs import replace

from rooflens.api.spots import Hotspot
from rooflens.api.suggestions import meant_by, public
from rooflens.api.verdict import Verdict
from rooflens.errors import InputError, UnknownKeyError, UsageError, any_of, meant_names, near_names
from rooflens.format import SENTENCE_NAME_WIDTH, cut_name, duration, harmless, percent, plain_name
from rooflens.globs import covers
from rooflens.model.catalogue import kernel_quantities, quantities
from rooflens.model.counters.table import NAMES
from rooflens.model.records import LEVELS, Grain

if TYPE_CHECKING:
    import altair as alt

    from rooflens.api.figures import Sizes
    from rooflens.api.sources import Source
    from rooflens.ingest.metrics.stored import Value
    from rooflens.model.records import (
        Analysis,
        Finding,
        Gain,
        JudgedLoop,
        Level,
        Limit,
        Move,
        Phases,
        Pipe,
        Series,
        Status,
    )


@cache
def columns() -> Mapping[str, Callable[[Kernel], Any]]:
    """Return by column name, in column order, the function that takes the summary's value from a kernel."""

    def taken(value: Callable[[Analysis], Any]) -> Callable[[Kernel], Any]:
        return lambda kernel: value(kernel.analysis)

    found: dict[str, Callable[[Kernel], Any]] = {one.name: taken(one.value) for one in quantities()}
    return {**found, "time_share": kernel_quantities()["time_share"].value}


def column(name: str) -> Callable[[Kernel], Any]:
    """Return the function that takes a value of the summary from a kernel.

    Raises:
        UnknownKeyError: The column does not exist.
    """
    if name not in columns():
        raise UnknownKeyError("quantity", name, list(columns()), "list(kernel)")
    return columns()[name]


class Kernel(Mapping[str, Any]):
    """One profiled launch of a kernel: what it did, what limits it, why, and where.

    Values that were not measured are None, never 0. Shares are fractions, 0 to 1, of the report's own peaks at the
    profiled clock; other numbers are in the unit that ends their name. Each column of the summary is also a key:
    `kernel["dram_share"]`. Two kernels are equal if they are the same result of the same report.

    >>> import rooflens as rl
    >>> kernel = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")[0]
    >>> kernel.verdict.bound
    'compute'
    >>> round(kernel.levels["dram"].share, 3)
    0.075
    """

    __slots__ = ("_analysis", "_source", "_total_ns")

    def __init__(self, analysis: Analysis, source: Source, total_ns: float) -> None:
        """Take a record.

        Args:
            analysis: The kernel's analysis.
            source: Where its report came from.
            total_ns: GPU time of all kernels opened together.
        """
        self._analysis = analysis
        self._source = source
        self._total_ns = total_ns

    def __repr__(self) -> str:
        name = cut_name(plain_name(self.name), SENTENCE_NAME_WIDTH)
        parts = [
            duration(self.gpu_time_ns),
            self.verdict.shown_class,
            *(
                f"{what} {'x'.join(map(str, size))}"
                for what, size in (("grid", self.grid), ("block", self.block))
                if size
            ),
            *([] if self.registers_per_thread is None else [f"{self.registers_per_thread:g} registers"]),
            *([] if self.occupancy is None else [f"occupancy {percent(self.occupancy)}"]),
        ]
        return f"<Kernel {name!r}: {', '.join(parts)}>"

    def __getitem__(self, name: str) -> Any:
        """Return a value of the summary by column name, see `Report.to_arrow`, or a metric by ncu's name.

        Raises:
            UnknownKeyError: There is no such column or metric: a `KeyError` whose hint suggests similar names.

        >>> import rooflens as rl
        >>> kernel = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")[0]
        >>> kernel["verdict_bound"], kernel["duration_ns"] == kernel.duration_ns
        ('compute', True)
        """
        if "__" in name:  # ncu's name for a metric
            try:
                return self.metric(name)
            except InputError as error:
                raise UnknownKeyError("metric", name, self._source.metrics.names, "kernel.metrics()") from error
        return column(name)(self)

    if not TYPE_CHECKING:  # type checkers must see no other attributes

        def __getattr__(self, name: str) -> Any:
            """Return what a name that a kernel lacks means: a column of the summary, or by `rooflens.meant`."""
            if not name.startswith("_") and name in columns():
                return self[name]
            return meant_by(self, name, [*public(Kernel), *columns()])

    def __iter__(self) -> Iterator[str]:
        return iter(columns())

    def __len__(self) -> int:
        return len(columns())

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Kernel):
            return NotImplemented
        return (self._position, self.verdict.sentence) == (other._position, other.verdict.sentence)

    def __hash__(self) -> int:
        return hash(self._position)

    @property
    def _position(self) -> tuple[str, int]:
        return self._analysis.kernel.digest, self.index

    def _repr_html_(self) -> str:
        """Write the HTML that a notebook shows: verdict and findings, without script."""
        from rooflens.report.notebook import kernel_html

        return kernel_html(self._source.report, self._analysis)

    @property
    def analysis(self) -> Analysis:
        """The full record behind commands and pages (`rooflens.model.records`)."""
        return self._analysis

    @property
    def key(self) -> str:
        """A name for this launch that stays the same in other recordings of the program; see `Report.__getitem__`."""
        return self._analysis.key

    @property
    def name(self) -> str:
        """Demangled name, with template arguments and parameters if the report has them."""
        return self._analysis.kernel.name

    @property
    def function_name(self) -> str:
        """Name without template arguments and parameters."""
        return self._analysis.kernel.function_name

    @property
    def source(self) -> str:
        """Path of its report, as given."""
        return self._analysis.kernel.source

    @property
    def index(self) -> int:
        """Position among all results of its report, from 0."""
        return self._analysis.kernel.index

    @property
    def status(self) -> Status:
        """`ok`; `partial` if counters are missing; `failed` if it could not be profiled or analyzed."""
        return self._analysis.kernel.status

    @property
    def status_reason(self) -> str | None:
        """Why it could not be profiled or analyzed; None if there was no error."""
        return self._analysis.kernel.status_reason

    @property
    def gpu(self) -> str | None:
        """Name of the GPU; None if the report does not name it."""
        return self._analysis.kernel.gpu

    @property
    def compute_capability(self) -> str | None:
        """Compute capability, such as `9.0`; None if the report does not state it."""
        return self._analysis.kernel.compute_capability

    @property
    def nvtx_range(self) -> str | None:
        """Path of the NVTX ranges around the launch, outermost first: `train/step/forward`; None outside any range."""
        return self._analysis.kernel.nvtx_range

    @property
    def grid(self) -> tuple[int, int, int] | None:
        """Blocks in x, y and z; None if the report does not state them."""
        return self._analysis.kernel.grid

    @property
    def block(self) -> tuple[int, int, int] | None:
        """Threads per block in x, y and z; None if the report does not state them."""
        return self._analysis.kernel.block

    @property
    def registers_per_thread(self) -> float | None:
        """Registers per thread; None if the report does not state them."""
        return self._analysis.kernel.counters.get("registers_per_thread")

    @property
    def occupancy(self) -> float | None:
        """Resident warps over the warps that an SM can hold, 0 to 1; None if not measured."""
        found: float | None = self["occupancy"]
        return found

    @property
    def is_synthetic(self) -> bool:
        """True if a generator wrote the report, without a recording."""
        return self._analysis.kernel.synthetic

    @property
    def duration_ns(self) -> float | None:
        """GPU time of one launch in nanoseconds; None if not measured."""
        return self._analysis.kernel.duration_ns

    @property
    def launches(self) -> int:
        """How many of the program's launches it represents: 1, unless they were counted without the profiler."""
        return self._analysis.launches

    @property
    def gpu_time_ns(self) -> float | None:
        """GPU time of all these launches in nanoseconds; None if not measured."""
        return self._analysis.gpu_time_ns

    @property
    def time_share(self) -> float | None:
        """Fraction of the GPU time of everything opened together, 0 to 1; None if not measured."""
        time_ns = self.gpu_time_ns
        return time_ns / self._total_ns if time_ns is not None and self._total_ns else None

    @property
    def verdict(self) -> Verdict:
        """What limits it, and how much faster it could be."""
        return Verdict(self._analysis)

    @property
    def gain(self) -> Gain | None:
        """What its first move gains: `verdict.gain`, with `factor` and `time_after_ns`; None if unknown.

        >>> import rooflens as rl
        >>> kernel = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")[0]
        >>> kernel.gain == kernel.verdict.gain
        True
        """
        return self.verdict.gain

    @property
    def limit(self) -> Limit:
        """How much faster it can be at most: `verdict.limit`, with `factor`, `floor_ns` and `proven`.

        >>> import rooflens as rl
        >>> kernel = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")[0]
        >>> kernel.limit == kernel.verdict.limit
        True
        """
        return self.verdict.limit

    @property
    def moves(self) -> tuple[Move, ...]:
        """What to do, most important first: `verdict.moves`, each with `text`, `kind`, `finding`, `where` and `gain`.

        >>> import rooflens as rl
        >>> kernel = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")[0]
        >>> kernel.moves == kernel.verdict.moves
        True
        """
        return self.verdict.moves

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Reasons why the kernel is slower than it could be: those that cost time first, then notes.

        Each has `id`, `title`, `severity` (`limiter`, `contributes` or `note`), `evidence` (numbers with unit and
        source), `where` (places with `share` and `hotspot`), `move` (what to do) and `gain` (None, or with a `factor`).
        """
        return self._analysis.findings

    @property
    def flags(self) -> tuple[str, ...]:
        """IDs of the measurement traps that apply to it: `rooflens about flags/NAME` explains each."""
        return self._analysis.flags

    @property
    def levels(self) -> Mapping[str, Level]:
        """Traffic and roof by memory level: `dram`, `l2`, `l1`, `smem`.

        Each has `amount_bytes`, `bytes_per_s`, `peak_bytes_per_s`, `share`, `intensity_flop_per_byte`, and `stages`,
        the busiest of which gives the share.
        """
        return dict(self._analysis.levels)

    @property
    def intensity(self) -> Mapping[str, float | None]:
        """Floating-point operations per byte, by memory level: `dram`, `l2`, `l1`, `smem`; None if unknown.

        >>> import rooflens as rl
        >>> kernel = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")[0]
        >>> kernel.intensity["dram"] == kernel["dram_intensity"]
        True
        """
        levels = self._analysis.levels
        return {name: levels[name].intensity_flop_per_byte if name in levels else None for name in LEVELS}

    @property
    def pipes(self) -> Mapping[str, Pipe]:
        """Work and roof by execution pipe: `fp32`, `tensor_bf16`, `alu`, `issue`, ...

        Each has `amount`, `amount_per_s` and `peak_per_s` in its `unit`, and `share`.
        """
        return dict(self._analysis.pipes)

    @property
    def stalls(self) -> Mapping[str, float]:
        """Fraction of all stall samples (else stall cycles) by reason, 0 to 1; empty if none were recorded."""
        return dict(self._analysis.kernel.stalls)

    @property
    def flop_total(self) -> float | None:
        """Floating-point operations of one launch, all types together; None if a part is unknown."""
        return self._analysis.flop_total

    @property
    def flop_per_s(self) -> float | None:
        """Floating-point operations per second; None if `flop_total` or the duration is None."""
        return self._analysis.flop_per_s

    @property
    def phases(self) -> Phases | None:
        """How its run divides into ramp, plateau and tail; None without samples or without a clear plateau."""
        return self._analysis.phases

    def hotspots(self, by: Grain | None = None) -> tuple[Hotspot, ...]:
        """List its hottest lines, instructions or functions, most samples first; empty if none were recorded.

        Args:
            by: `line`, `sass` or `function`; by default lines if they are known, else instructions.

        Raises:
            rooflens.errors.UsageError: `by` has another value.

        >>> import rooflens as rl
        >>> [spot.pc for spot in rl.open("sampled.ncu-rep")[0].hotspots()]
        [16, 0, 32]
        """
        if by is not None and by not in get_args(Grain):
            raise UsageError(f"there is no `{by}` to list", "`by` is one of line, sass (the instructions), function")
        kernel = self._analysis.kernel
        grain = by or ("line" if any(spot.by == "line" for spot in kernel.hotspots) else "sass")
        samples = kernel.code_totals.get("samples")
        return tuple(Hotspot(spot, samples) for spot in kernel.hotspots if spot.by == grain)

    @property
    def loops(self) -> tuple[JudgedLoop, ...]:
        """Its loops and straight-line parts by machine code, each with its share of warps' time and what limits it.

        Their own amounts add up to the kernel's. Empty where the report holds no counts by instruction, or no code.

        >>> import rooflens as rl
        >>> rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")[0].loops
        ()
        """
        return self._analysis.loops

    def timeline(self) -> Series | None:
        """Return the samples taken while it ran: `interval_ns`, and `shares` of peak, 0 to 1, by level or pipe.

        None if the report has no samples; collect them with `--detail deep`.

        >>> import rooflens as rl
        >>> rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")[0].timeline() is None
        True
        """
        return self._analysis.kernel.series

    def metric(self, name: str) -> Value | None:
        """Return a number from its report.

        Args:
            name: A counter of rooflens, in SI units (`dram_bytes`; `rooflens metrics` lists them), or the full name
                of one of ncu's metrics, as the report stores it (`sm__throughput.avg.pct_of_peak_sustained_elapsed`).

        Returns:
            The value; None if this kernel lacks it.

        Raises:
            InputError: No kernel of the report has a metric of this name, or the report is gone or has changed.

        >>> import rooflens as rl
        >>> kernel = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")[0]
        >>> kernel.metric("duration_ns") == kernel.duration_ns
        True
        """
        if name in NAMES:
            return self._analysis.kernel.counters.get(name)
        found = self._source.metrics
        if name not in found.names:
            raise InputError(f"no kernel of `{self.source}` has a metric `{name}`", _hint(name, found.names))
        return found.of(self.index).get(name)

    def metrics(self, pattern: str = "*") -> dict[str, Value]:
        """Return its numbers with matching names: rooflens's counters and ncu's metrics.

        Args:
            pattern: `*` matches any text, `?` any character: `sm__*`, `*_share`.

        Raises:
            InputError: The report is gone or has changed.

        >>> import rooflens as rl
        >>> kernel = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")[0]
        >>> sorted(kernel.metrics("gpu__*"))
        ['gpu__time_duration.sum']
        """
        values: dict[str, Any] = {**self._source.metrics.of(self.index), **self._analysis.kernel.counters}
        return {name: values[name] for name in sorted(values) if covers(pattern, name)}

    def chart(self, level: str | None = None, **sizes: Unpack[Sizes]) -> alt.LayerChart:
        """Draw its roofline as an Altair chart of layers: `rooflens.figure`, with its sizes and errors.

        Args:
            level: `dram`, `l2`, `l1`, `smem`, or `all`; by default the level that limits it.
            sizes: `width`, `height`, `font` and `theme`.

        >>> import rooflens as rl
        >>> kernel = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")[0]
        >>> sorted({row["level"] for row in kernel.chart("all").data.values})
        ['dram', 'l1', 'l2', 'smem']
        """
        from rooflens.api.figures import draw
        from rooflens.model.verdict.thresholds import default_thresholds

        return draw([replace(self._source.report, analyses=(self._analysis,))], default_thresholds(), level, **sizes)

    def explain(self) -> str:
        """Explain the kernel in Markdown that also reads as text: its limiter, the counters behind it, what to try.

        >>> import rooflens as rl
        >>> kernel = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")[0]
        >>> kernel.function_name in kernel.explain()
        True
        """
        from rooflens.report.kernel.document import explain

        return harmless(explain(self._source.report, self._analysis))

    def to_dict(self) -> dict[str, Any]:
        """Return its entry in `kernels` of `rooflens explain --format json`, loops included; there is a JSON Schema.

        >>> import rooflens as rl
        >>> kernel = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")[0]
        >>> kernel.to_dict()["verdict"]["bound"]
        'compute'
        """
        from rooflens.model.catalogue import KERNEL

        written: dict[str, Any] = KERNEL.json(self._analysis)
        return written


def _hint(name: str, choices: Collection[str]) -> str:
    if "__" in name:
        near = near_names(name, choices)
        return f"did you mean `{near[0]}`?" if near else f"collect it with `rooflens collect --metrics {name}`"
    near = meant_names(name, sorted(NAMES, key=lambda one: (len(one), one))) or [
        f"kernel[{key!r}]" for key in meant_names(name, columns())
    ]
    return f"did you mean {any_of(near)}? `.metrics()` lists all" if near else "`.metrics()` lists what there is"
