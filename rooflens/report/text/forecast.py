"""Predictions as text: the table of the terminal, JSON, CSV and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from rooflens.format import MISSING, duration, percent, si, significant
from rooflens.model.predict.communication import uneven
from rooflens.model.predict.forecast import Forecast, Row, gpus_to_hold, held_bytes, moving, work_of
from rooflens.model.predict.published import floor_words, time_words
from rooflens.model.predict.rows import pipes_for
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.data import csv_text, json_text

TILES = (
    "bytes of a tile are set against DRAM, as if L2 caught none of them; where operands fit into L2 it "
    "catches most, and --l2-tile sets them against L2"
)


def to_json(rows: Sequence[Row]) -> str:
    """Write one prediction as one object, several as a list under `predictions`."""
    objects = [_object(row, sizes, result) for row in rows for sizes, result in row.steps]
    document = objects[0] if len(objects) == 1 else {"predictions": objects}
    return json_text(document)


def _object(row: Row, sizes: Mapping[str, int], result: Forecast) -> dict[str, Any]:
    return {
        "operation": row.operation.name,
        "sizes": dict(sizes),
        "dtype": row.dtype,
        "out_dtype": row.result_dtype,
        "gpu": row.gpu.name,
        "gpus": row.operation.group(sizes),
        **numbers(result),
        **other_numbers(result),
        **numbers_of_whole(row.measured_s, result),
        "attainable_sources": list(found.sources) if (found := result.attainable) else [],
        **_repeated(row, sizes, result),
        "held_bytes": held_bytes(row.operation, sizes, row.dtype, row.out_dtype),
        "memory_bytes": row.gpu.dram_size.value if row.gpu.dram_size else None,
        "gpus_to_hold": gpus_to_hold(row.operation, sizes, row.dtype, row.gpu, row.out_dtype),
        "parts": [
            {"part": part.label, "count": part.count, **numbers(part), **other_numbers(part)} for part in result.parts
        ],
    }


def _repeated(row: Row, sizes: Mapping[str, int], result: Forecast) -> dict[str, Any]:
    """Say how much more FLOPs and bytes all GPUs that split heads or columns have together than one; None for one."""
    gpus = sizes.get("tensor_parallel", 1)
    if gpus == 1:
        return {"repeated_flop_share": None, "repeated_bytes_share": None}
    flop, moved_bytes = work_of(row.operation, {**sizes, "tensor_parallel": 1}, row.dtype, row.out_dtype)
    return {
        "repeated_flop_share": gpus * result.flop / flop - 1,
        "repeated_bytes_share": gpus * result.moved_bytes / moved_bytes - 1,
    }


def other_numbers(result: Forecast) -> dict[str, Any]:
    """Give what bounds a kernel beside FLOPs, DRAM and links, by its published names; None where not known."""
    rates = result.rates
    several = bool(result.parts)
    return {
        "longest": result.longest,
        "special": result.special,
        "special_per_s": None if several or rates.special_per_s == inf else rates.special_per_s,
        "t_special_s": result.t_special_s,
        "issued": result.issued,
        "issued_per_s": None if several or rates.issued_per_s == inf else rates.issued_per_s,
        "t_issue_s": result.t_issue_s,
        "l2_bytes": result.l2_bytes,
        "l2_bytes_per_s": None if rates.l2_bytes_per_s == inf else rates.l2_bytes_per_s,
        "t_l2_s": result.t_l2_s,
    }


def numbers_of_whole(measured_s: float | None, result: Forecast) -> dict[str, Any]:
    """Give the numbers that parts do not have, by their published names: the warm floor, tokens, what is attained."""
    found, floor_s = result.attainable, result.t_lower_s
    return {
        "t_lower_warm_s": result.t_lower_warm_s,
        "bandwidth_bytes_per_s": result.bandwidth_bytes_per_s,
        "tokens_per_s": result.tokens_per_s,
        "measured_s": measured_s,
        "time_over_floor": measured_s / floor_s if measured_s and floor_s else None,
        "time_over_attainable": measured_s / found.typical_s if measured_s and found else None,
        "attainable_low_s": found.low_s if found else None,
        "attainable_typical_s": found.typical_s if found else None,
        "attainable_high_s": found.high_s if found else None,
        "attainable_proven": found.proven if found else None,
        "attainable_points": found.points if found else 0,
    }


def numbers(result: Forecast) -> dict[str, Any]:
    """Give the numbers of a forecast by their published names, in SI base units; None where there is none."""
    return {
        "flop": result.flop,
        "bytes": result.moved_bytes,
        "intensity": result.intensity if result.moved_bytes else None,
        "peak": result.peak,
        "peak_flop_per_s": result.peak_flop_per_s,
        "ridge": result.ridge,
        "regime": result.regime,
        "t_math_s": result.t_math_s,
        "t_memory_s": result.t_memory_s,
        "t_comms_s": result.t_comms_s,
        "t_lower_s": result.t_lower_s,
        "sent_bytes": result.sent_bytes,
        "link": result.link,
        "link_bytes_per_s": result.link_bytes_per_s,
        "link_intensity": result.link_intensity,
        "link_ridge": result.link_ridge,
        "roof_flop_per_s": result.roof_flop_per_s,
        "share_of_peak": result.share_of_peak,
    }


def to_csv(rows: Sequence[Row]) -> str:
    """Write a line for each prediction: SI base units, sizes in columns of their own, parts left out."""
    objects = [_object(row, sizes, result) for row in rows for sizes, result in row.steps]
    for row in objects:
        row.pop("parts")
        row["attainable_sources"] = "; ".join(row["attainable_sources"])
        sizes = row.pop("sizes")
        row.update({f"size_{name}": value for name, value in sizes.items()})
    return csv_text(list(objects[0]), objects).rstrip("\n")


_OF_A_LINK = ("sent", "FLOP/link B", "T comms")


def columns_of(row: Row) -> tuple[str, ...]:
    """Name the columns of a row's table: those of a link where GPUs share it, times beside the usual where counted."""
    return tuple(_cells(row, "", row.steps[0][1]))


def _cells(row: Row, sizes: str, result: Forecast) -> dict[str, str]:
    cells = {
        "sizes": sizes,
        "FLOP": si(result.flop, "FLOP"),
        "bytes": si(result.moved_bytes, "B"),
        "FLOP/B": significant(result.intensity),
        "ridge": significant(result.ridge),
        "sent": si(result.sent_bytes, "B"),
        "FLOP/link B": significant(result.link_intensity) if result.link_intensity else MISSING,
        "regime": f"{result.regime}-bound",
        "T math": duration(result.t_math_s * 1e9),
        "T memory": duration(result.t_memory_s * 1e9),
        "T comms": duration(result.t_comms_s * 1e9),
        "T MUFU": _time(result.t_special_s),
        "T issue": _time(result.t_issue_s),
        "T L2": _time(result.t_l2_s),
        "floor": duration(result.t_lower_s * 1e9),
        "warm floor": _time(result.t_lower_warm_s),
        "of peak": percent(result.share_of_peak),
    }
    steps = [step for _, step in row.steps]
    shown = dict.fromkeys(_OF_A_LINK, any(step.link for step in steps))
    shown |= {
        "T MUFU": any(_tells(step.special_s, step) for step in steps),
        "T issue": any(_tells(step.issue_s, step) for step in steps),
        "T L2": any(through_l2(step) for step in steps),
        "warm floor": any(step.t_lower_warm_s is not None for step in steps),
    }
    return {name: cell for name, cell in cells.items() if shown.get(name, True)}


_TELLS_FROM = 0.01
"""Part of the floor from which a time beside the usual ones has a column, and an uneven split a note."""


def _tells(time_s: float, result: Forecast) -> bool:
    return time_s > _TELLS_FROM * result.t_lower_s


def _time(seconds: float | None) -> str:
    return MISSING if seconds is None else duration(seconds * 1e9)


def through_l2(result: Forecast) -> bool:
    """Return whether more passes between the SMs and L2 than must come from DRAM."""
    return result.l2_bytes > result.moved_bytes


def sizes_text(row: Row, sizes: Mapping[str, int]) -> str:
    """Write the sizes that tell a step apart: `m = n = k = 4,096`."""
    names = moving(row)
    if len(names) > 1 and len({sizes[name] for name in names}) == 1:
        return f"{' = '.join(names)} = {sizes[names[0]]:,}"
    return ", ".join(f"{name} {sizes[name]:,}" for name in names) or "usual sizes"


def heading(row: Row) -> str:
    """Name operation, type and GPU."""
    return f"{row.operation.name}, {row.dtype}, on {row.gpu.name}"


def notes(row: Row) -> list[str]:
    """Say which roofs were used, where the regime changes, and what was reached."""
    last = row.steps[-1][1]
    compute, memory = si(last.peak_flop_per_s, "FLOP/s"), si(last.bandwidth_bytes_per_s, "B/s")
    said = [
        f"roofs: {resource_label(last.peak)} {compute}, DRAM {memory}",
        *filter(None, [of_products(row)]),
        *([f"results in {row.result_dtype}"] if row.result_dtype != row.dtype else []),
        *_fit_notes(row),
        *_link_notes(row),
        *_uneven_notes(row),
    ]
    if any(sizes.get("tile") and "l2_tile" in sizes for sizes, _ in row.steps):
        said.append(TILES)
    said += [f"{regime}-bound from {sizes_text(row, sizes)}" for sizes, regime in row.crossings]
    if last.attainable or last.t_lower_warm_s is not None:
        at = f"{sizes_text(row, row.steps[-1][0])}: " if len(row.steps) > 1 else ""
        said.append(f"{at}{floor_words(last.t_lower_s, last.attainable, last.t_lower_warm_s)}")
    if last.tokens_per_s and len(row.steps) == 1:
        said.append(f"at best {significant(last.tokens_per_s)} tokens/s")
    if row.measured_s:
        said.append(time_words(row.measured_s, last.t_lower_s, last.attainable, last.t_without_dram_s))
    return said


def of_products(row: Row) -> str:
    """Say what peak counted FLOPs have where they are matrix products; empty where that peak is used or not known."""
    pipe = next((name for name in pipes_for("matrix", row.dtype) if name in row.gpu.peaks), row.steps[-1][1].peak)
    if row.operation.unit != "counted" or pipe == row.steps[-1][1].peak:
        return ""
    return f"matrix products could use tensor cores: {resource_label(pipe)} {si(row.gpu.peaks[pipe].value, 'FLOP/s')}"


def _fit_notes(row: Row) -> list[str]:
    """Say of the largest step that does not fit what it holds, and how many GPUs would hold it."""
    size = row.gpu.dram_size
    held = [(held_bytes(row.operation, sizes, row.dtype, row.out_dtype) or 0.0, sizes) for sizes, _ in row.steps]
    most, sizes = max(held, key=lambda step: step[0])
    if size is None or most <= size.value:
        return []
    what = "operands" if row.operation.parts is None else "weights and cache alone"
    needed = gpus_to_hold(row.operation, sizes, row.dtype, row.gpu, row.out_dtype)
    at = f" ({sizes_text(row, sizes)})" if len(row.steps) > 1 else ""
    taken = f"{what} take {si(most, 'B')} of a GPU's {si(size.value, 'B')}"
    return [f"does not fit{at}: {taken}; it takes {needed} such GPUs or more to hold them"]


def _link_notes(row: Row) -> list[str]:
    """Name each link that GPUs share the work over, the most GPUs that do, and where T math and T comms are equal."""
    over = {result.link: (row.operation.group(sizes), result) for sizes, result in row.steps if result.link}
    said = []
    for kind, (gpus, result) in over.items():
        link = row.gpu.links[kind]
        rate, both = si(link.bytes_per_s_per_direction, "B/s"), si(link.bytes_per_s_total, "B/s")
        ridge = f"; ridge {significant(result.link_ridge)} FLOP/link B" if result.flop and result.link_ridge else ""
        said.append(f"link of {gpus} GPUs: {link.name}, {rate} each way, {both} both ways{ridge}")
    return said


def _uneven_notes(row: Row) -> list[str]:
    """Say for each number of GPUs which sizes they cannot split evenly, and what that costs."""
    found = dict.fromkeys(one for sizes, _ in row.steps for one in uneven(sizes))
    return [
        f"{one.gpus} GPUs do not divide {one.amount:,} {one.what}: the one with most has {one.most:,}, as if "
        f"there were {percent(one.extra)} more"
        for one in found
        if one.extra >= _TELLS_FROM
    ]


def table_rows(row: Row) -> list[tuple[str, ...]]:
    """Write the steps as cells; a single composite operation shows its parts and their sum."""
    if len(row.steps) > 1 or not row.steps[0][1].parts:
        named = [(sizes_text(row, sizes), result) for sizes, result in row.steps]
    else:
        whole = row.steps[0][1]
        named = [(f"{part.count} x {part.label}" if part.count > 1 else part.label, part) for part in whole.parts]
        named.append(("all", whole))
    return [tuple(_cells(row, name, result).values()) for name, result in named]
