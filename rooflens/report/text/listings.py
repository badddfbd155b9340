"""Tables of rooflens's knowledge: workloads, GPUs, metrics, and the counters that findings need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rooflens.format import MISSING, bare_intensity, count, si, significant
from rooflens.model.counters.metric import Kind, Metric
from rooflens.model.findings.find import RULES
from rooflens.model.findings.rule import IN_PROGRAM
from rooflens.model.needs import Untold, tier_of
from rooflens.model.roofline.datasheets import LINK_KINDS, LINK_NAMES, Datasheet, Quantity
from rooflens.report.document import Column, Document, Heading, Table, bullets, code, few, rest_note

_PEAK_COLUMNS = ("fp64", "fp32", "tensor_bf16", "tensor_fp8")

_COSTS: tuple[tuple[Kind, str], ...] = (
    ("sass", "one SASS collection"),
    ("sampling", "warp sampling"),
)
"""Kind -> what ncu runs for it beside the hardware passes."""

_MISSING_SHOWN = 10
"""Rows of what a report lacks: with the command that collects it they fit a screen."""


def gpu_table(gpus: Sequence[Datasheet]) -> Table:
    """Make a table of GPUs: datasheet bandwidth, fastest link in one direction, and dense peaks at boost clock."""
    numbers = ("CC", "SMs", "boost", "DRAM", "link", *(name.replace("_", " ") for name in _PEAK_COLUMNS))
    worth = {"link": 1, "boost": 2, "fp64": 3, "SMs": 3, "tensor fp8": 4}
    columns = (Column(heading, right=True, worth=worth.get(heading, 6)) for heading in numbers)
    rows = (
        (
            gpu.name.removeprefix("NVIDIA "),
            gpu.id,
            gpu.compute_capability,
            f"{gpu.sm_count.value:.0f}",
            si(gpu.boost_clock.value, "Hz"),
            si(gpu.dram_bandwidth.value, "B/s"),
            _fastest_link(gpu),
            *(si(gpu.peaks[name].value, "FLOP/s") if name in gpu.peaks else "-" for name in _PEAK_COLUMNS),
        )
        for gpu in gpus
    )
    return Table((Column("gpu", fit="name"), Column("short name", worth=9), *columns), tuple(rows))


def _fastest_link(gpu: Datasheet) -> str:
    """Write `NVLink 4 450 GB/s`: what a GPU can send over its fastest link."""
    link = next((gpu.links[kind] for kind in LINK_KINDS if kind in gpu.links), None)
    return f"{link.name} {si(link.bytes_per_s_per_direction, 'B/s')}" if link else "-"


def gpu_details(gpu: Datasheet) -> Table:
    """Make a table of one GPU's numbers, each with its source; peaks have their DRAM ridge, in operations per byte."""
    ridges = {_label(key): peak.value / gpu.dram_bandwidth.value for key, peak in gpu.peaks.items()}
    rows = (
        (label, value, bare_intensity(ridges.get(label)) if label in ridges else "", source)
        for label, (value, source) in _quantities(gpu).items()
    )
    value, source = Column("value", fit="wrap", least=20), Column("source", fit="prose", least=24)
    return Table((Column("number"), value, Column("ridge", right=True), source), tuple(rows), gpu.name)


def _label(peak: str) -> str:
    return peak.replace("_", " ")


def _quantities(gpu: Datasheet) -> dict[str, tuple[str, str]]:
    rows = {"SMs": (significant(gpu.sm_count.value), gpu.sm_count.source)}
    if gpu.memory_kind:
        rows["memory"] = (gpu.memory_kind, "the kind that its documents name")
    named: dict[str, Quantity[str] | None] = {
        "boost clock": gpu.boost_clock,
        "base clock": gpu.base_clock,
        "floors at": gpu.fastest_clock if gpu.above_boost > 1 else None,
        "tensor peaks at": gpu.tensor_boost_clock,
        "DRAM": gpu.dram_bandwidth,
        "L2": gpu.l2_size,
        "L2 to the SMs": gpu.l2_bandwidth,
        "special functions": gpu.special_rate,
        "issued instructions": gpu.issue_rate,
    }
    named |= {_label(key): quantity for key, quantity in gpu.peaks.items()}
    units = {"byte": "B", "byte/s": "B/s", "op/s": "OP/s"}
    floats = {_label(key) for key in gpu.peaks if "int" not in key}
    for label, quantity in named.items():
        if quantity is not None:
            unit = "FLOP/s" if label in floats else units.get(quantity.unit, quantity.unit)
            rows[label] = (si(quantity.value, unit), quantity.source)
    return rows | _links(gpu)


def _links(gpu: Datasheet) -> dict[str, tuple[str, str]]:
    """Give the bandwidth of each link in each direction, or say that there is none; unknown links are left out."""
    found = {LINK_NAMES[kind]: ("none", source) for kind, source in gpu.absent_links.items()}
    for link in gpu.links.values():
        rates = [si(rate, "B/s") for rate in (link.bytes_per_s_per_direction, link.bytes_per_s_total)]
        joins = f", joins {link.joins}" if link.joins else ""
        found[link.name] = (f"{rates[0]} each way, {rates[1]} both ways{joins}", link.source)
    return found


def metrics_table(chip: str, detail: str, metrics: Sequence[Metric], hardware_passes: int | None) -> Table:
    """Make a table of what one tier collects on one chip.

    Args:
        chip: The chip, as `gh100`.
        detail: The tier.
        metrics: The metrics requested from ncu.
        hardware_passes: The number by NVIDIA's scheduler; None if it is not installed.
    """
    title = f"{chip}, {detail}: {count(len(metrics), 'metric')}, {passes_text(metrics, hardware_passes)}"
    columns = (
        Column("metric", fit="wrap", least=40),
        Column("counted by", worth=4),
        Column("from tier"),
        Column("meaning", fit="prose", least=24),
    )
    return Table(columns, tuple((one.name, one.kind, one.detail, one.meaning) for one in metrics), title)


def findings_table(chip: str, metrics: Sequence[Metric]) -> Table:
    """Make a table of the counters that each finding needs on one chip, and in which tier that is collected.

    Args:
        chip: The chip, as `gh100`.
        metrics: What the widest tier asks for on it.
    """
    rows = (
        ("" if number else rule.id, " + ".join(group), _tier(group, metrics, chip))
        for rule in RULES
        for number, group in enumerate(rule.needs)
    )
    columns = (Column("finding"), Column("told from", fit="wrap", worth=6, least=24), Column("from tier"))
    return Table(columns, tuple(rows), f"{chip}: what findings are told from; one line is enough")


def understood_tables(source: str, used: Mapping[str, Sequence[str]], unread: Sequence[str]) -> tuple[Table, ...]:
    """List the quantities of a report, each with its source, and all metrics that are not understood."""
    rows = tuple((quantity, "; ".join(sources)) for quantity, sources in used.items())
    title = (code(source), f": {count(len(used), 'quantity')} read")
    read = Table((Column("quantity"), Column("read from", fit="prose", least=40)), rows, title)
    names = tuple((name,) for name in unread)
    return (read, *([Table((Column("not understood", fit="wrap", least=40),), names)] if unread else []))


def understood_document(
    source: str, kernels: int, used: int, unread: Sequence[str], untold: Sequence[Untold]
) -> Document:
    """Summarize what a report's metrics gave: quantities, metrics not understood, findings that it cannot show.

    Args:
        source: Path of the report.
        kernels: Number of its kernels whose profiling did not fail.
        used: Number of quantities that were read.
        unread: Requested metrics that nothing reads.
        untold: The findings that it cannot show.
    """
    traced = [f"`{row.rule.id}`" for row in untold if row.ways == ((IN_PROGRAM,),)]
    not_read = (f"{count(len(unread), 'metric')} not understood: ", *few([*map(code, unread)], 3))
    return (
        Heading((code(source), f": {count(kernels, 'kernel')}, {count(used, 'quantity')} read"), 3),
        bullets(
            [
                not_read if unread else "every metric that was asked for is understood",
                f"{len(untold)} of {len(RULES)} findings cannot be seen, as what tells them is missing",
                *(f"{name} needs a timeline: `rooflens analyze --timeline FILE`" for name in traced),
            ]
        ),
    )


def missing_document(missing: Mapping[str, Sequence[str]], metrics: Sequence[Metric]) -> Document:
    """Tabulate the missing ncu metrics, and what each would show."""
    meanings = {metric.name: metric.meaning.partition(":")[0] for metric in metrics}
    meanings |= {name: f"share of peak: {what}" for name, what in meanings.items() if ".pct_of_peak" in name}
    groups: list[tuple[dict[str, None], dict[str, None]]] = []
    for name, tells in missing.items():
        together = [group for group in groups if group[1].keys() & {*tells}]
        place = groups.index(together[0]) if together else len(groups)
        meant: dict[str, None] = {}
        told: dict[str, None] = {}
        for of_group, by_group in (*together, ({meanings[name]: None}, dict.fromkeys(tells))):
            meant |= of_group
            told |= by_group
        groups = [group for group in groups if group not in together]
        groups.insert(place, (meant, told))
    rows = tuple((few([*meant], 1), few([*told], 3)) for meant, told in groups)
    columns = Column("missing", fit="prose", least=24), Column("would tell", fit="prose", least=24)
    return Table(columns, rows[:_MISSING_SHOWN]), *rest_note(len(rows), _MISSING_SHOWN, " that `--all` lists")


def untold_table(
    source: str, untold: Sequence[Untold], kernel_count: int, chip: str, metrics: Sequence[Metric]
) -> Table:
    """Make a table of the findings that kernels of a report cannot have.

    Args:
        source: Path of the report.
        untold: These findings.
        kernel_count: Kernels of the report that did not fail while profiled.
        chip: Its chip; empty if no tier is known for it.
        metrics: What the widest tier asks for on that chip.
    """
    of = f" of {len(RULES)} that {count(kernel_count, 'kernel')} cannot have"
    rows = (
        (
            *(("", "") if number else (row.rule.id, f"{row.kernel_count} of {kernel_count}")),
            " + ".join(group),
            _tier(group, metrics, chip),
        )
        for row in untold
        for number, group in enumerate(row.ways)
    )
    columns = (
        Column("finding"),
        Column("kernels"),
        Column("lacks", fit="wrap", worth=6, least=24),
        Column("from tier"),
    )
    return Table(columns, tuple(rows), (code(source), f": {count(len(untold), 'finding')}{of}"))


def _tier(group: Sequence[str], metrics: Sequence[Metric], chip: str) -> str:
    """Name the tier that collects a group of names; an un-profiled trace belongs to no tier."""
    if IN_PROGRAM in group:
        return "trace (nsys)"
    return tier_of(group, metrics, chip) or MISSING


def passes_text(metrics: Iterable[Metric], hardware_passes: int | None) -> str:
    """Write the cost of a collection: `3 hardware passes, one SASS collection, warp sampling`."""
    kinds = Counter(metric.kind for metric in metrics)
    passes = "passes not counted" if hardware_passes is None else count(hardware_passes, "hardware pass")
    return ", ".join((passes, *(cost for kind, cost in _COSTS if kinds[kind])))


def metric_names(metrics: Iterable[Metric]) -> str:
    """Write the bare names, one per line."""
    return "\n".join(metric.name for metric in metrics)
