"""The kernels on another GPU: ridges by GPU, which kernels switch between memory and compute, and the choice of one.

The page holds the ridges of a few GPUs as a table, and of every GPU the numbers from which `report/other_gpu.js` writes
the sentences and the cells of the one that is chosen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from rooflens import format as fmt
from rooflens.model.bounds import Bound
from rooflens.model.predict.other_gpu import SMALL_PART, Effect, Roofs, Standing, change, gpu_roofs, standing, sum_up
from rooflens.model.records import Analysis
from rooflens.model.roofline.datasheets import PEAK_KEYS, Datasheet, datasheet_of, load_datasheets
from rooflens.model.roofline.work import main_unit
from rooflens.model.summary import KernelSummary, whole
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.content import Content
from rooflens.report.html.embed import json_block
from rooflens.report.html.templates import render
from rooflens.report.labels import UNITS
from rooflens.report.roofline.datasheet import gpu_choices, short_name

STORY = ("a100-sxm4-80gb", "h100-sxm", "b200")
"""Three generations that stand in the table before any GPU is chosen, by id."""

MAX_ROWS = 40
"""Kernels in the table, the longest first."""

MAX_COUNTED = 1000
"""Kernels that are put on every GPU, the longest first: of more than these the rest takes next to no time."""

MAX_HOMES = 4
"""GPUs of a mixed page that stand in the table of ridges, those of the longest kernels first."""

OPEN_ROWS = 5
"""A table of more ridges than this is folded."""

MAX_PRECISIONS = 4
NAME_WIDTH = 56
TITLE_WIDTH = 400


class Placed(Struct, frozen=True):
    """One kernel of the page, its median launch standing for all, and its place under the roofs of its own GPU."""

    group: KernelSummary
    analysis: Analysis
    here: Standing

    @property
    def name(self) -> str:
        """Name that fits the table, with its launches where there are several."""
        times = f" x{self.group.launch_count:,}" if self.group.launch_count > 1 else ""
        return fmt.cut_middle(self.group.shown, NAME_WIDTH) + times

    @property
    def title(self) -> str:
        """Name that fits a tooltip."""
        return fmt.cut_middle(self.group.name, TITLE_WIDTH)

    @property
    def bound(self) -> Bound:
        """Class of its verdict."""
        return self.analysis.verdict.bound

    @property
    def unit(self) -> str:
        """What its main work counts."""
        return UNITS[main_unit(self.analysis.pipes.values())]

    @property
    def lower_ns(self) -> float:
        """Lower bound of all its launches here."""
        return self.here.place.lower_s * self.here.launches * 1e9


class RidgeRow(Struct, frozen=True):
    """One GPU of the table of ridges, as text.

    Attributes:
        id: Of its file; empty where no file has it.
        ridges: Ridge and peak by precision; `MISSING` and nothing where it has no such pipe.
        changes: How many kernels switch, and their part of the GPU time; both may be empty.
    """

    id: str
    name: str
    note: str
    bandwidth: str
    ridges: tuple[tuple[str, str], ...]
    changes: tuple[str, str]


class Other(Struct, frozen=True):
    """What one GPU would change.

    Attributes:
        effect: Summed over all kernels that can be placed.
        profiled: True where every kernel ran on this very GPU.
    """

    gpu: Datasheet
    roofs: Roofs
    effect: Effect
    profiled: bool


class Home(Struct, frozen=True):
    """A GPU of the page: its name in the report, its file, and the roofs its kernels are compared with."""

    name: str
    gpu: Datasheet | None
    roofs: Roofs


def what_if(content: Content) -> Markup:
    """Offer every GPU with a datasheet, and show the ridges of three generations beside the page's own.

    Empty where nothing can be predicted: no kernel has both its FLOPs and its DRAM bytes in the report.
    """
    counted = content.kernels[:MAX_COUNTED]
    placed = [one for group in counted if (one := _placed(group)) is not None]
    if not placed:
        return Markup("")
    precisions = used_precisions([kernel.here for kernel in placed])
    homes = _homes(placed)
    others = {gpu.id: _other(gpu, homes, placed) for gpu in load_datasheets()}
    rows = [_home_row(home, content, precisions, others) for home in homes[:MAX_HOMES]]
    known = {row.id for row in rows}
    rows += [
        _ridge_row(
            (key, short_name(others[key].gpu), ""), others[key].roofs, precisions, _changes(others[key], content)
        )
        for key in STORY
        if key in others and key not in known
    ]
    return render(
        "report/other_gpu",
        placed=placed[:MAX_ROWS],
        left_out=len(counted) - len(placed),
        uncounted=len(content.kernels) - len(counted),
        cut=len(placed) > MAX_ROWS,
        tall=len(rows) > OPEN_ROWS,
        choices=gpu_choices({home.gpu.id for home in homes if home.gpu}),
        precisions=[f"#{resource_label(key)}" for key in precisions],
        story=story(precisions),
        rows=rows,
        more_homes=max(0, len(homes) - MAX_HOMES),
        unlisted=[home.name for home in homes if home.gpu is None],
        tensor=any(key.startswith("tensor") for key in precisions),
        block=json_block("what-if-data", _numbers(content, placed, precisions, others.values())),
    )


def _placed(group: KernelSummary) -> Placed | None:
    median = whole(group).analysis
    here = standing(median)
    return None if here is None else Placed(group, median, here)


def used_precisions(standings: Iterable[Standing]) -> tuple[str, ...]:
    """List the pipes that do a part of any kernel's work worth a ridge, the one with most operations first."""
    amounts: defaultdict[str, float] = defaultdict(float)
    for here in standings:
        for key, amount in here.load.ops.items():
            if key in PEAK_KEYS and amount >= SMALL_PART * here.load.total_ops:
                amounts[key] += amount * here.launches
    return tuple(sorted(amounts, key=lambda key: -amounts[key])[:MAX_PRECISIONS])


def story(precisions: Sequence[str]) -> tuple[str, list[tuple[str, str]]] | None:
    """Follow the ridge of the main precision over three generations; None where fewer than two of them have it."""
    gpus = {gpu.id: gpu for gpu in load_datasheets()}
    if not precisions:
        return None
    ridges = [
        (short_name(gpus[id_]), fmt.significant(ridge))
        for id_ in STORY
        if id_ in gpus and (ridge := gpu_roofs(gpus[id_]).ridge_per_byte(precisions[0]))
    ]
    return (resource_label(precisions[0]), ridges) if len(ridges) > 1 else None


def _homes(placed: Sequence[Placed]) -> list[Home]:
    homes: dict[str, Home] = {}
    for kernel in placed:
        name, roofs = kernel.group.gpu, kernel.here.roofs
        # A report's roofs are those of the pipes that one kernel uses: other kernels add theirs.
        peaks = {**roofs.peaks_per_s, **homes[name].roofs.peaks_per_s} if name in homes else roofs.peaks_per_s
        homes[name] = Home(name, datasheet_of(name), replace(roofs, peaks_per_s=peaks))
    return list(homes.values())


def _home_row(home: Home, content: Content, precisions: Sequence[str], others: Mapping[str, Other]) -> RidgeRow:
    if home.gpu is None:
        return _ridge_row(("", home.name, "roofs of its report"), home.roofs, precisions, ("", ""))
    changes = _changes(others[home.gpu.id], content) if len(content.gpus) > 1 else ("", "")
    who = (home.gpu.id, short_name(home.gpu), "profiled here")
    return _ridge_row(who, home.roofs, precisions, changes)


def _ridge_row(
    who: tuple[str, str, str], roofs: Roofs, precisions: Sequence[str], changes: tuple[str, str]
) -> RidgeRow:
    ridges = tuple(
        (
            fmt.significant(roofs.ridge_per_byte(key)),
            fmt.si(peak, ("op/s" if "int" in key else "FLOP/s")) if (peak := roofs.peaks_per_s.get(key)) else "",
        )
        for key in precisions
    )
    return RidgeRow(*who, fmt.si(roofs.bandwidth_bytes_per_s, "B/s"), ridges, changes)


def _other(gpu: Datasheet, homes: Sequence[Home], placed: Sequence[Placed]) -> Other:
    roofs = gpu_roofs(gpu)
    effect = sum_up(change(kernel.here, roofs) for kernel in placed)
    return Other(gpu, roofs, effect, profiled=all(home.gpu is not None and home.gpu.id == gpu.id for home in homes))


def _changes(other: Other, content: Content) -> tuple[str, str]:
    """Write how many kernels switch between memory and compute, and their part of the GPU time."""
    changed = other.effect.changed
    if not changed.count:
        return "none" if other.effect.placed.count else fmt.MISSING, ""
    return str(
        changed.count
    ), f"{fmt.percent(changed.time_ns / content.total_ns)} of GPU time" if content.total_ns else ""


def _numbers(
    content: Content, placed: Sequence[Placed], precisions: Sequence[str], others: Iterable[Other]
) -> dict[str, Any]:
    """Collect what the script needs: the kernels of the table, and of each GPU its roofs and what it would change."""
    keys = dict.fromkeys([*precisions, *(key for kernel in placed for key in kernel.here.load.ops)])
    here = placed[0].here.roofs if len(content.gpus) == 1 else None
    return {
        "total_ns": content.total_ns,
        "small_part": SMALL_PART,
        "precisions": precisions,
        "main": precisions[0] if precisions else "",
        "labels": {key: resource_label(key) for key in keys},
        "here": None if here is None else _roof_numbers(here, precisions[:1]),
        "kernels": [_kernel_numbers(kernel.here) for kernel in placed[:MAX_ROWS]],
        "gpus": {other.gpu.id: _other_numbers(other, keys) for other in others},
    }


def _roof_numbers(roofs: Roofs, keys: Iterable[str]) -> dict[str, Any]:
    peaks = {key: roofs.peaks_per_s[key] for key in keys if key in roofs.peaks_per_s}
    return {"bandwidth": roofs.bandwidth_bytes_per_s, "peaks": peaks}


def _kernel_numbers(here: Standing) -> dict[str, Any]:
    return {
        "ops": dict(here.load.ops),
        "bytes": here.load.moved_bytes,
        "launches": here.launches,
        "lower_s": here.place.lower_s,
        "told": here.told,
    }


def _other_numbers(other: Other, keys: Iterable[str]) -> dict[str, Any]:
    effect = other.effect
    return {
        "name": short_name(other.gpu),
        "profiled": other.profiled,
        **_roof_numbers(other.roofs, keys),
        "placed": effect.placed.count,
        "to": {side: tally.count for side, tally in effect.to.items()},
        "changed_ns": effect.changed.time_ns,
        "told": {"count": effect.told.count, "here_s": effect.lower_here_s, "there_s": effect.lower_there_s},
        "apart": {"count": effect.apart.count, "ns": effect.apart.time_ns},
        "missing": dict(effect.missing),
    }
