"""Recipes: the ways in which a stored metric, or several, give a quantity; and the rows that are made of them.

Recipes are told apart by their classes. They are named tuples, as every command defines them: dataclasses took longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from rooflens.model.counters.aliases import aliases_of
from rooflens.model.counters.chips import VOLTA
from rooflens.model.counters.metric import LOAD, PEAK, SHARE, Ask


class Exact(NamedTuple):
    """Take the first of the stored metrics, times `scale`.

    Attributes:
        above_zero: It is never zero: then zero is what a small number was rounded to, and tells nothing.
    """

    names: tuple[str, ...]
    scale: float = 1.0
    above_zero: bool = False


class Amount(NamedTuple):
    """Add up the amounts of one group of base metrics, times `scale`.

    For each form (`.sum`, `.sum.per_second x t`, `.sum.per_cycle_elapsed x f x t`, bare name) the groups are tried in
    order.
    """

    groups: tuple[tuple[str, ...], ...]
    scale: float = 1.0


class Peak(NamedTuple):
    """Find the peak rate of a base metric in units per second, times `scale`.

    Forms: `.sum.peak_sustained x f`, `.sum.peak_sustained_elapsed.per_second`, then achieved rate / per cent of peak.
    """

    base: str
    clock: str
    scale: float = 1.0


class RateOverShare(NamedTuple):
    """Divide the achieved rate of one base metric by the stored per cent of peak of another that sees the same flow."""

    rate: str
    share: str


class PerSm(NamedTuple):
    """Use an architecture constant: units per SM and cycle x SM count x the clock named."""

    units_per_cycle: float
    clock: str


class Share(NamedTuple):
    """Read a stored per cent of peak as a fraction; per cents of active cycles are scaled to elapsed ones.

    Attributes:
        as_is: Where the active cycles are unknown, take their per cent as it is: no less, and said in its source.
    """

    bases: tuple[str, ...]
    as_is: bool = True


class CyclesOverTime(NamedTuple):
    """Divide a stored count of elapsed cycles by the duration."""

    names: tuple[str, ...]


class CyclesOverRate(NamedTuple):
    """Divide a stored count of elapsed cycles by its own rate, times `scale`: ncu made the rate with the duration."""

    bases: tuple[str, ...]
    scale: float = 1.0


class CyclesOverClock(NamedTuple):
    """Divide the first stored count of elapsed cycles by the first stored clock of the same speed, times `scale`."""

    cycles: tuple[str, ...]
    clocks: tuple[str, ...]
    scale: float = 1.0


class Mean(NamedTuple):
    """Take the mean of a base metric over the instances of its unit, or its sum over their number."""

    base: str


class OverOwnRate(NamedTuple):
    """Divide any stored amount by its own rate per second, which ncu made with the duration; times `scale`."""

    scale: float = 1.0


class SumOverRate(NamedTuple):
    """Divide the sum of stored amounts by the rate of the whole, which is named last; times `scale`."""

    names: tuple[str, ...]
    scale: float = 1.0


class WhileActive(NamedTuple):
    """Take the first of the stored rates per active cycle, times `scale`, of the elapsed cycles."""

    names: tuple[str, ...]
    scale: float = 1.0


class Waves(NamedTuple):
    """Divide the blocks of the grid by those that all SMs hold at once, by the limits of an SM.

    Null for clusters, of which a GPU holds fewer than its SMs could, and where a limit is not stored.

    Attributes:
        names: The size of a cluster, and the warps of an SM where blocks are not limited by name.
    """

    names: tuple[str, ...] = ("launch__cluster_size", "device__attribute_max_warps_per_multiprocessor")


class Quotient(NamedTuple):
    """Divide one stored metric by another, times `scale`."""

    part: str
    whole: str
    scale: float = 1.0


class Same(NamedTuple):
    """Take another counter's value: two clocks that were equal wherever both were stored."""

    counter: str


class MemoryBus(NamedTuple):
    """Multiply the driver's memory clock by two bits a pin and the width of the bus, in bytes per second.

    Two bits hold for HBM2 to HBM3e and for GDDR5 to GDDR7: the driver counts the clock of each that way. They do not
    hold for chips that share the host's memory: the driver does not tell the clock of that, so these have no value.
    """

    clock: str = "device__attribute_memory_clock_rate"
    pins: str = "device__attribute_global_memory_bus_width"
    shared: str = "device__attribute_integrated"


class BusAtClock(NamedTuple):
    """Multiply the width of the memory bus by two bits a pin and the clock named, as in `MemoryBus`."""

    clock: str
    pins: str = "device__attribute_global_memory_bus_width"
    shared: str = "device__attribute_integrated"


class ShareOfCycles(NamedTuple):
    """Multiply a per cent of peak by the cycles of all instances, which do one a cycle at most; times `scale`."""

    share: str
    cycles: str
    scale: float = 1.0


class HostLink(NamedTuple):
    """Work out what the link to the host carries in each direction, in bytes per second.

    NVLink-C2C where the GPU has it; else PCIe, at the lower of the rates and widths of its two ends, less what the
    encoding takes: a fifth up to 5 GT/s, 2 of 130 bits above. Chips that share the host's memory have none.

    Attributes:
        names: The attributes: two rates, two widths, whether there is C2C, whether the memory is shared.
    """

    names: tuple[str, ...] = (
        "device__attribute_gpu_pci_ext_gpu_link_rate",
        "device__attribute_gpu_pci_ext_downstream_link_rate",
        "device__attribute_gpu_pci_ext_gpu_link_width",
        "device__attribute_gpu_pci_ext_downstream_link_width",
        "c2clink__present",
        "device__attribute_integrated",
    )


Recipe: TypeAlias = (
    Exact
    | Amount
    | Peak
    | RateOverShare
    | PerSm
    | Share
    | CyclesOverTime
    | CyclesOverRate
    | CyclesOverClock
    | Mean
    | OverOwnRate
    | SumOverRate
    | WhileActive
    | Waves
    | Quotient
    | Same
    | MemoryBus
    | BusAtClock
    | ShareOfCycles
    | HostLink
)


@dataclass(frozen=True, slots=True)
class Counter:
    """One resolved quantity: a column of the table `kernels`.

    Attributes:
        asked: What a collection asks ncu for to know it, where another row does not ask for that already.
    """

    name: str
    meaning: str
    recipes: tuple[Recipe, ...]
    asked: tuple[Ask, ...] = ()

    def asks(self) -> Iterator[Ask]:
        """Yield what ncu is asked for, complete: by default what the first recipe reads first, in that form."""
        first = self.recipes[0]
        for ask in self.asked:
            base, forms = ask.base or bases_of(first)[0], ask.forms or (form_read(first),)
            yield replace(ask, meaning=ask.meaning or self.meaning, base=base, forms=forms)


def exact(name: str, meaning: str, *stored: str, scale: float = 1.0, asked: tuple[Ask, ...] = ()) -> Counter:
    """Make a row of metrics that are taken as they are, or by one of the quantity's other names."""
    return Counter(name, meaning, (Exact(stored, scale), *_by_other_names(name)), asked)


def amount(name: str, meaning: str, *bases: str, scale: float = 1.0, asked: tuple[Ask, ...] = ()) -> Counter:
    """Make a row of amounts; the bases are tried in order, then the quantity's other names."""
    recipe = Amount(tuple((base,) for base in bases), scale)
    return Counter(name, meaning, (recipe, *_by_other_names(name)), asked)


def _by_other_names(quantity: str) -> Iterator[Recipe]:
    for name, scale, over in aliases_of(quantity):
        yield Quotient(name, over, scale) if over else Exact((name,), scale)


def share(
    name: str,
    unit: str,
    *bases: str,
    asked: tuple[Ask, ...] = (),
    meaning: str = "use of the {}",
    as_is: bool = True,
) -> Counter:
    """Make a row of per cents of a unit's peak; the bases are tried in order."""
    asked = tuple(replace(ask, meaning=ask.meaning or unit) for ask in asked)
    return Counter(name, meaning.format(unit), (Share(bases, as_is),), asked)


def busy(name: str, unit: str, *bases: str, asked: tuple[Ask, ...] = (), as_is: bool = True) -> Counter:
    """Make a row of the share of cycles in which a unit was busy."""
    return share(name, unit, *bases, asked=asked, meaning="cycles the {} was busy", as_is=as_is)


def sass_rows(letter: str, dtype: str) -> tuple[Counter, ...]:
    """Make the rows of one precision: thread instructions add, mul, fma, and the peak rate of fma."""
    base = "smsp__sass_thread_inst_executed_op_{}_pred_on"
    rows = [
        amount(
            f"{letter}{op}_threads",
            f"predicated-on {dtype} {op} thread instructions",
            base.format(f"{letter}{op}"),
            base.format(f"{letter}{op}").replace("smsp__", "sm__"),
            asked=(Ask("deep", f"{dtype} {op} thread instructions", patched=VOLTA),),
        )
        for op in ("add", "mul", "fma")
    ]
    fma, instructions = base.format(f"{letter}fma").removeprefix("smsp"), f"{dtype} fma thread instructions"
    peaks = (Peak(f"sm{fma}", "sm_clock_hz"), Peak(f"smsp{fma}", "sm_clock_hz"))
    asked = (Ask("quick", instructions, patched=VOLTA),)
    every = base.replace("_op_", "_ops_").format(f"{letter}add_{letter}mul_{letter}fma")
    together = f"predicated-on {dtype} add, mul and fma thread instructions together"
    rows.append(amount(f"{dtype.rpartition(' ')[2]}_threads", together, every))
    return (*rows, Counter(f"{letter}fma_peak_threads_per_s", f"peak rate of {instructions}", peaks, asked))


def pipe_rows(pipe: str, meaning: str, *asked: Ask) -> tuple[Counter, ...]:
    """Make the rows of an instruction pipe: warp instructions, their peak rate, and the busiest share of it."""
    base, asks = f"sm__inst_executed_pipe_{pipe}", tuple(replace(one, forms=LOAD) for one in asked)
    return (
        amount(
            f"{pipe}_inst", f"warp instructions of the {meaning}", base, f"smsp__inst_executed_pipe_{pipe}", asked=asks
        ),
        Counter(f"{pipe}_peak_inst_per_s", f"peak rate of the {meaning}", (Peak(base, "sm_clock_hz"),)),
        share(f"{pipe}_inst_share", meaning, base),
    )


def form_read(recipe: Recipe) -> str:
    """Return the roll-up in which a recipe reads its first metric."""
    match recipe:
        case Exact(names=names):
            return names[0].partition(".")[2]
        case Peak():
            return PEAK
        case Share():
            return SHARE
        case Mean():
            return "avg"
        case _:
            return "sum"


def bases_of(recipe: Recipe) -> tuple[str, ...]:
    """Return the names, without roll-up, of the stored metrics that a recipe may read."""
    return tuple(dict.fromkeys(name.partition(".")[0] for name in _names_of(recipe)))


def _names_of(recipe: Recipe) -> tuple[str, ...]:
    """Return the names that a recipe holds, with the roll-ups that it states."""
    names: tuple[str, ...] = ()
    match recipe:
        case (
            Exact(names=names)
            | CyclesOverTime(names=names)
            | Share(bases=names)
            | CyclesOverRate(bases=names)
            | HostLink(names=names)
            | WhileActive(names=names)
            | SumOverRate(names=names)
            | Waves(names=names)
        ):
            pass
        case Amount(groups=groups):
            names = tuple(base for group in groups for base in group)
        case Peak(base=base) | Mean(base=base):
            names = (base,)
        case MemoryBus(clock=clock, pins=pins, shared=shared):
            names = (clock, pins, shared)
        case BusAtClock(pins=pins, shared=shared):
            names = (pins, shared)
        case CyclesOverClock(cycles=cycles, clocks=clocks):
            names = (*cycles, *clocks)
        case (
            RateOverShare(rate=first, share=second)
            | ShareOfCycles(cycles=first, share=second)
            | Quotient(part=first, whole=second)
        ):
            names = (first, second)
    return names
