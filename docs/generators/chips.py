"""Make the tables of docs/reference/gpus/: roofs, ridges and counters of each generation; the text is handwritten."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from generators.texts import table
from rooflens.collect.tiers import metrics_for
from rooflens.format import MISSING
from rooflens.model.counters.chips import FAMILIES
from rooflens.model.counters.metric import DETAILS
from rooflens.model.counters.table import BESIDE, COUNTERS
from rooflens.model.counters.tensor import tensor_counters
from rooflens.model.roofline.datasheets import PEAK_KEYS, Datasheet, load_datasheets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflens.model.counters.metric import Ask

_SECTIONS: dict[str, tuple[str, ...]] = {
    "volta": ("pascal", "volta", "turing"),
    "ampere": ("ampere", "ampere-rtx", "ada"),
    "hopper": ("hopper",),
    "blackwell": ("blackwell", "blackwell-rtx"),
    "systems-on-chip": ("systems-on-chip",),
}
"""Page -> the generations that it has a section of."""
GENERATIONS: dict[str, tuple[str, ...]] = {
    "pascal": ("6.0", "6.1"),
    "volta": ("7.0",),
    "turing": ("7.5",),
    "ampere": ("8.0",),
    "ampere-rtx": ("8.6",),
    "ada": ("8.9",),
    "hopper": ("9.0",),
    "blackwell": ("10.0", "10.3", "10.7"),
    "blackwell-rtx": ("12.0",),
    "systems-on-chip": ("7.2", "8.7", "10.1", "11.0", "12.1"),
}
"""Generation -> the compute capabilities of its chips."""

_WORDS = {
    "counters": "Counters that distinguish these chips, with the tier that collects each:",
    "tensor": "Tensor operations have a counter for these operands, `sm__ops_path_tensor_src_*`, or "
    "`..._op_INSTRUCTION_src_*` where an instruction is named:",
    "passes": "The cost of a collection ([why](../../explanation/passes.md)):",
    "roofs": "From the datasheet: dense, at boost clock, in 10¹² operations per second.",
    "ridges": "**Ridge points**: peak over DRAM bandwidth, in operations per byte. "
    "Left of its ridge a kernel is bound by memory.",
    "sources": "**Sources**: `rooflens gpus NAME` prints each number with its document.",
}
"""Name of a table -> the sentence above it, the same on every page."""

_PASSES = Path(__file__).parents[1] / "explanation" / "passes.md"
_MIB = 2**20
_WHOLE_FROM = 100
"""Ridges from here on are written without a fraction."""
_RATE_WIDTH = 0.02
"""Boards whose rates a cycle differ by less are rounded datasheets of one rate."""


def tables() -> dict[str, Callable[[], Mapping[str, list[str]]]]:
    """Return the generator of the tables of each page, by its file below docs/reference; every GPU is on one page."""
    known = {capability for capabilities in GENERATIONS.values() for capability in capabilities}
    assert {board.compute_capability for board in load_datasheets()} <= known, "a generation lacks its page"
    return {f"gpus/{page}.md": partial(_page, page) for page in _SECTIONS}


def rates() -> list[str]:
    """Make the table of operations per cycle, by generation, each with a link to its page."""
    rows = (
        (f"[{name}](gpus/{page}.md)", ", ".join(GENERATIONS[name]), *_rates(_boards(name)))
        for page, names in _SECTIONS.items()
        for name in names
    )
    head = ("generation", "CC", *(_title(key) for key in _INDEXED))
    return table(head, rows)


_INDEXED = ("fp64", "fp32", "fp16", "tensor_fp64", "tensor_fp16", "tensor_fp8", "tensor_int8")


def _rates(boards: Sequence[Datasheet]) -> Iterator[str]:
    """Return operations per cycle and SM of each type; several if boards of one generation differ."""
    for key in _INDEXED:
        found: list[float] = []
        for board in boards:
            peak = board.peaks.get(key)
            rate = peak.value / board.sm_count.value / board.clock_of(key).value if peak else 0.0
            if rate and not any(abs(rate / other - 1) < _RATE_WIDTH for other in found):
                found.append(rate)
        yield ", ".join(dict.fromkeys(f"{rate:.0f}" for rate in sorted(map(_round_rate, found)))) or MISSING


def _round_rate(rate: float) -> float:
    """Return the power of two, or three quarters of one, that a rounded datasheet means; other numbers are kept."""
    near = min(
        (part * 2.0**power for power in range(1, 20) for part in (1.0, 0.75)), key=lambda one: abs(one / rate - 1)
    )
    return near if abs(near / rate - 1) < _RATE_WIDTH else rate


def _page(page: str) -> dict[str, list[str]]:
    """Make the tables of a page: `roofs`, or `volta-roofs` if it has several generations."""
    names = _SECTIONS[page]
    return {
        (key if len(names) == 1 else f"{name}-{key}"): lines for name in names for key, lines in _section(name).items()
    }


def _section(name: str) -> dict[str, list[str]]:
    families = tuple(dict.fromkeys(chips for capability, chips in FAMILIES if capability in GENERATIONS[name]))
    tables: dict[str, list[str]] = {
        "roofs": _roofs(_boards(name)),
        "ridges": _ridges(_boards(name)),
        "sources": _sources(_boards(name)),
    }
    if families:
        tables |= {"passes": _passes(families), "counters": _counters(families), "tensor": _tensor(families)}
    return {key: [_WORDS[key], "", *lines] for key, lines in tables.items() if lines}


def _boards(name: str) -> list[Datasheet]:
    return [board for board in load_datasheets() if board.compute_capability in GENERATIONS[name]]


def _keys(boards: Sequence[Datasheet]) -> list[str]:
    return [key for key in PEAK_KEYS if any(key in board.peaks for board in boards)]


def _title(key: str) -> str:
    return key.replace("_", " ")


def _roofs(boards: Sequence[Datasheet]) -> list[str]:
    keys = _keys(boards)
    head = ("`--gpu`", "SMs", "boost GHz", "memory", "DRAM GB/s", "L2 MiB", *map(_title, keys))
    return table(head, ((*_board(board), *(_peak(board, key) for key in keys)) for board in boards))


def _board(board: Datasheet) -> tuple[str, ...]:
    size = f"{board.dram_size.value / 1e9:.0f} GB" if board.dram_size else ""
    return (
        f"`{board.id}`",
        f"{board.sm_count.value:.0f}",
        f"{board.boost_clock.value / 1e9:.3f}",
        " ".join(filter(None, (size, board.memory_kind))) or MISSING,
        f"{board.dram_bandwidth.value / 1e9:.0f}",
        f"{board.l2_size.value / _MIB:.4g}" if board.l2_size else MISSING,
    )


def _peak(board: Datasheet, key: str) -> str:
    return f"{board.peaks[key].value / 1e12:.4g}" if key in board.peaks else MISSING


def _ridges(boards: Sequence[Datasheet]) -> list[str]:
    keys = _keys(boards)
    rows = (
        (
            f"`{board.id}`",
            *(
                _ridge(board.peaks[key].value / board.dram_bandwidth.value) if key in board.peaks else MISSING
                for key in keys
            ),
        )
        for board in boards
    )
    return table(("`--gpu`", *map(_title, keys)), rows)


def _ridge(flop_per_byte: float) -> str:
    return f"{flop_per_byte:.0f}" if flop_per_byte >= _WHOLE_FROM else f"{flop_per_byte:.3g}"


def _sources(boards: Sequence[Datasheet]) -> list[str]:
    """List the documents of each board; values computed from SMs, rate and clock have their own column."""
    rows = []
    for board in boards:
        numbers = {
            "SMs": board.sm_count,
            "boost": board.boost_clock,
            "DRAM": board.dram_bandwidth,
            **{_title(key): board.peaks[key] for key in PEAK_KEYS if key in board.peaks},
        }
        documents: dict[str, list[str]] = {}
        derived = []
        for name, number in numbers.items():
            if number.source.startswith("derived"):
                derived.append(name)
            else:
                documents.setdefault(
                    re.split(r" \(|;|: |, (?:SXM|PCIe|NVL|non-tensor|comparison|tensor)\b", number.source)[0], []
                ).append(name)
        stated = "; ".join(f"{document}: {', '.join(names)}" for document, names in documents.items())
        rows.append((f"`{board.id}`", stated, ", ".join(derived) or MISSING))
    return table(("`--gpu`", "stated in", "worked out: SMs x rate x clock"), rows)


def _passes(families: Sequence[frozenset[str]]) -> list[str]:
    """Return the passes of each tier, from a page whose own test asks NVIDIA's scheduler."""
    text = _PASSES.read_text(encoding="utf-8")
    rows = []
    for family in families:
        chips = ", ".join(sorted(family))
        found = re.search(rf"^\| {chips} \| [^|]+ \| (\d+) \| (\d+) \| (\d+) \|", text, flags=re.MULTILINE)
        assert found is not None, chips
        sizes = (len(metrics_for(min(family), detail)) for detail in DETAILS)
        rows.append((chips, *(f"{count}, {size} metrics" for count, size in zip(found.groups(), sizes, strict=True))))
    return table(("chips", *(f"`{detail}`: passes" for detail in DETAILS)), rows)


def _counters(families: Sequence[frozenset[str]]) -> list[str]:
    """Describe how these chips differ from most: counters they lack, those only they have, and their tiers."""
    every = tuple(dict.fromkeys(chips for _, chips in FAMILIES))
    rows: dict[str, tuple[str, ...]] = {}
    for ask in _asks():
        usual = sum(min(family) in ask.chips for family in every) > len(every) / 2
        if any((min(family) in ask.chips) != usual for family in families):
            tiers = (next((metric.detail for metric in ask.metrics(min(family))), "no") for family in families)
            rows.setdefault(ask.base, (f"`{ask.base}`", ask.meaning, "yes" if usual else "no", *tiers))
    return table(("counter", "what it counts", "most chips", *(min(family) for family in families)), rows.values())


def _asks() -> Iterator[Ask]:
    for row in COUNTERS:
        yield from row.asks()
    yield from BESIDE


def _tensor(families: Sequence[frozenset[str]]) -> list[str]:
    """Return which tensor operations have a counter: for all instructions together, and for one."""
    rows = []
    for family in families:
        for row in tensor_counters(min(family)):
            operands = ", ".join(source.replace("_dst_", " into ").replace("_", "/") for source in row.sources)
            rows.append((min(family), row.op.upper() or "all", operands, "yes" if row.split else "no"))
    return table(("chip", "instruction", "counters of", "dense and sparse separately"), rows)
