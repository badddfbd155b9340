"""The bar of filters: what of the page's launches everything below it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.ranking import Tier, tiers
from rooflens.model.records import LEVELS
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.summary import Launch
from rooflens.model.verdict_classes import SHOWN_CLASSES
from rooflens.report.content import Content, Replaced
from rooflens.report.html.assets import style_px
from rooflens.report.page.charts import RooflineFigure
from rooflens.report.plane.plane import ALL, OWN
from rooflens.report.templates import render
from rooflens.report.words.gain_and_limit import limit_words
from rooflens.report.words.program import place_of

LABEL_WIDTH = 40

MANY = 20
"""From this many launches on, a slider can hide the shorter ones."""

NAME_WIDTH = 400

CHARACTER_PX = 7
"""About as wide as a character of small text is."""

SLIDER_CHARACTERS, MORE_CHARACTERS, TALLY_CHARACTERS = 16, 15, 30
"""Of their words, at most."""

FAILED = "failed"
"""Stands instead of a verdict for launches that have none because they failed."""


class ListEntry(Struct, frozen=True):
    """One entry of a list: the value that the page's state takes, and the words for it."""

    value: str
    label: str


class Picker(Struct, frozen=True):
    """One list to choose from; `key` is its place in the page's state."""

    key: str
    label: str
    choices: tuple[ListEntry, ...]

    @property
    def width_px(self) -> int:
        """About how much room it takes."""
        if not self.choices:
            return _px("gap") + _px("slider") + CHARACTER_PX * SLIDER_CHARACTERS
        return _px("gap") + _px("list") + CHARACTER_PX * (len(self.label) + 1)


WHENCE = frozenset({"gpu", "report", "range", "process", "device"})
"""Lists of what a launch comes from."""

SLIDER = Picker("top", "", ())
"""Stands for the slider among the lists."""


class Chip(Struct, frozen=True):
    """One verdict that can be shown alone, and how many launches have it."""

    bound: str
    launches: int

    @property
    def width_px(self) -> int:
        """About how much room it takes."""
        return CHARACTER_PX * (len(self.bound) + len(f"{self.launches:,}")) + 50


class Places(Struct, frozen=True):
    """Where a page puts each list to choose from: next to its links, next to the verdicts, or under a button."""

    above: Sequence[Picker]
    beside: Sequence[Picker]
    more: Sequence[Picker]


def selectors(
    rows: Sequence[Mapping[str, Any]],
    lists: Iterable[Picker],
    figures: Sequence[RooflineFigure],
    anchors: Sequence[tuple[str, str]],
    *,
    counted: tuple[str, int],
) -> Markup:
    """Offer what parts the launches of this page, the level of its rooflines, and links to its parts.

    Args:
        rows: Its launches, as `items` lists them.
        lists: What they can be chosen by; a list without a choice is left out.
        figures: Its rooflines.
        anchors: Name in the address and words of each part of the page.
        counted: What is counted, and how many launches the page does not draw.
    """
    noun, others = counted
    counts = Counter[str]()
    for row in rows:
        counts[row["bound"]] += row["n"]
    chips = tuple(Chip(bound, counts[bound]) for bound in (*SHOWN_CLASSES, FAILED) if counts[bound])
    chips = chips if len(chips) > 1 else ()
    levels = _levels(figures)
    offered = [one for one in lists if len(one.choices) > 1]
    if len(rows) >= MANY and any(row["ns"] for row in rows):
        offered.append(SLIDER)
    # What two rows of a wide screen do not hold opens on demand.
    row_px = style_px("shared/page.css", "content") - _px("gap")
    return render(
        "report/page#selectors",
        anchors=anchors,
        shown=len(rows) > 1,
        others=others,
        noun=noun,
        chips=chips,
        levels=levels,
        places=_places(
            offered,
            above_px=row_px - CHARACTER_PX * TALLY_CHARACTERS - _words_px(anchors),
            beside_px=row_px - _px("gap") - _px("search") - _words_px(levels) - _chips_px(chips),
        ),
    )


def _chips_px(chips: Sequence[Chip]) -> int:
    return sum(chip.width_px for chip in chips) + (CHARACTER_PX * len("Launches") + 8 if chips else 0)


def _px(name: str) -> int:
    return style_px("report/selectors.css", name)


def _levels(figures: Sequence[RooflineFigure]) -> tuple[tuple[str, str], ...]:
    """List the levels that can be shown, each launch at its own, and all at once; none where there is no choice."""
    present = {level for figure in figures for level in figure.level_choices}
    if len(present.intersection(LEVELS)) < 2:
        return ()
    gpus = [figure.plane.gpu for figure in figures if figure.level_choices]
    names = {OWN: "limiting", **{level: resource_label(level, *gpus) for level in LEVELS}, ALL: "all"}
    return tuple((level, name) for level, name in names.items() if level in present)


def _words_px(words: Iterable[tuple[str, str]]) -> int:
    return sum(CHARACTER_PX * len(label) + 22 for _, label in words)


def _places(pickers: Sequence[Picker], above_px: float, beside_px: float) -> Places:
    """Place selectors of a launch's origin above the chart if they fit, others next to it, the rest on demand."""
    for reserved_px in (0, _px("gap") + CHARACTER_PX * MORE_CHARACTERS):
        rooms_px = {"above": above_px, "beside": beside_px - reserved_px}
        placed: dict[str, list[Picker]] = {"above": [], "beside": [], "more": []}
        for picker in pickers:
            rows = ("above", "beside") if picker.key in WHENCE else ("beside", "above")
            row = next((row for row in rows if rooms_px[row] >= picker.width_px), "more")
            placed[row].append(picker)
            if row in rooms_px:
                rooms_px[row] -= picker.width_px
        if not placed["more"]:
            break
    return Places(**placed)


def pickers(rows: Sequence[Mapping[str, Any]], labels: Iterable[str], *, has_modules: bool) -> Iterator[Picker]:
    """List what the launches of a page can be chosen by.

    Args:
        rows: The launches, as `items` lists them.
        labels: The reports of the page, in order.
        has_modules: A place in the program is a module, too.
    """
    yield _picker("precision", "Pipe", rows, resource_label)
    yield _picker("gpu", "GPU", rows)
    present = {row["r"] for row in rows}
    yield Picker("report", "Report", tuple(_choice(label) for label in labels if label in present))
    yield _picker("range", "Range, module" if has_modules else "NVTX range", rows)
    # Where each report is of one process, the reports are the choice.
    if len({(row["r"], row["process"]) for row in rows}) > len({row["r"] for row in rows}):
        yield _picker("process", "Process", rows)
    yield _picker("device", "Device", rows, "device {}".format)


def _picker(key: str, label: str, rows: Iterable[Mapping[str, Any]], words: Callable[[str], str] = str) -> Picker:
    """List the values in order of falling time, as the launches come."""
    values = dict.fromkeys(row[key] for row in rows if row[key])
    return Picker(key, label, tuple(_choice(value, words) for value in values))


def _choice(value: str, words: Callable[[str], str] = str) -> ListEntry:
    return ListEntry(value, fmt.cut_middle(words(value), LABEL_WIDTH))


def items(content: Content) -> list[dict[str, Any]]:
    """List the launches in order of falling time; missing text is empty.

    Keys: `k` launch, `g` kernel, `n` launches it stands for, `r` label of its report, `ns` GPU time and `won` what can
    be won of it, null where unknown, `o` the row of the ranking it is part of and `tier` what that is ranked by, the
    lower the sooner, `full` the unit at its limit, `cum` share of GPU time before it; of kernels with
    versions, `f` the newest of them and `v` its place among the reports; the rest by name.
    """
    versions = _versions(content.earlier, list(content.report_labels))
    places = {
        kernel.key: {"o": row.key, "tier": int(tier)}
        for row, tier in zip(content.rows, tiers(content.rows), strict=True)
        for kernel in row.members or (row,)
    }
    nowhere = {"o": "", "tier": int(Tier.FILL)}
    return [
        _launch_item(launch, content.report_labels.get(launch.analysis.kernel.digest, ""))
        | places.get(launch.group_key, nowhere)
        | versions.get(launch.group_key, {})
        for launch in content.launches
    ]


def _versions(earlier: Mapping[str, Replaced], in_order: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Give each kernel with versions the key of the one to go on from and its place in the order of recording: last."""
    found: dict[str, dict[str, Any]] = {
        key: {"f": one.by.key, "v": in_order.index(one.kernel.analysis.kernel.digest)} for key, one in earlier.items()
    }
    for one in earlier.values():
        found[one.by.key] = {"f": one.by.key} | found.get(one.by.key, {}) | {"v": len(in_order)}
    return found


def precision(counted: Mapping[str, float]) -> str:
    """Name the type with most of a launch's FLOPs; empty without FLOPs."""
    flop = {dtype: amount for dtype, amount in counted.items() if amount > 0}
    return max(flop, key=lambda dtype: flop[dtype], default="")


def _launch_item(launch: Launch, report: str) -> dict[str, Any]:
    kernel = launch.analysis.kernel
    return {
        "k": launch.key,
        "g": "" if launch.failed else launch.group_key,
        "n": launch.analysis.launches,
        "name": fmt.cut_middle(launch.shown, NAME_WIDTH),
        "gpu": launch.gpu,
        "r": report,
        "bound": FAILED if launch.failed else launch.shown_class,
        "precision": precision(launch.analysis.counted_flop),
        "range": place_of(kernel.nvtx_range, launch.analysis.in_program),
        "process": kernel.process or "",
        "device": "" if kernel.device is None else str(kernel.device),
        "ns": launch.duration_ns,
        "won": None if launch.winnable_ns is None else round(launch.winnable_ns, 1),
        "full": limit_words(launch.analysis) if launch.analysis.verdict.at_roof else "",
        # A share without a duration is not known to be small, but it is in no top by time either.
        "cum": 1.0 if launch.duration_ns is None else round(min(launch.cumulative_share, 1.0), 6),
    }
