"""Names of levels, pipes and stages for people, and how busy they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from rooflens.format import percent
from rooflens.model.records import SAME_SHARE, Bottleneck, Level, Roof
from rooflens.model.roofline.datasheets import ANY_MEMORY, memory_label
from rooflens.model.roofline.standing import Binding
from rooflens.model.roofline.units import L2_INTERNAL, LSU_INPUT, PIPE_ROWS, WHOLE
from rooflens.model.verdict_classes import is_open

LEVEL_LABELS: Mapping[str, str] = {"dram": ANY_MEMORY, "l2": "L2", "l1": "L1", "smem": "SMEM"}
PIPE_LABELS: Mapping[str, str] = {row.key: row.label for row in PIPE_ROWS}
_SPOKEN = {"smem": "shared memory", "issue": "instruction issue"}
"""Words, with their article, that a sentence uses instead of the label."""
STAGE_WORDS = {LSU_INPUT: "load/store slots", "data": "data passes", WHOLE: "stage not named"}
"""Stages in the words of what a kernel uses of them: an instruction takes a slot, and its data a pass of 128 bytes."""
_UNITS = re.compile(r"\b(lsu|l2)\b")


@lru_cache(maxsize=1024)
def resource_label(resource: str | None, *gpus: str | None) -> str:
    """Name a level or a pipe for people: ALU pipe, FP32, tensor bf16; DRAM by the kind the GPUs have, as HBM3."""
    if resource is None:
        return "busiest unit"
    if resource == "dram" and gpus:
        return memory_label(*gpus)
    known = LEVEL_LABELS.get(resource) or PIPE_LABELS.get(resource)
    return known or (resource.upper() if resource.startswith("fp") else resource.replace("_", " "))


def origin(roof: Roof | None) -> str:
    """Say behind a peak that it is not the run's own: ` by the datasheet`, ` at its rated clock`; else empty."""
    if roof is None or roof.is_measured:
        return ""
    return " by the datasheet" if roof.source == "datasheet" else " at its rated clock"


def stage_label(stage: str) -> str:
    """Name what a stage of a memory level counts: `load/store slots`, `data passes`, `bank reads`, `to L2`."""
    return STAGE_WORDS.get(stage) or _UNITS.sub(lambda unit: unit[0].upper(), stage.replace("_", " "))


def binding_label(binding: Binding) -> str:
    """Name what is full before a drawn roof: `L1 load/store slots`, `ALU pipe`."""
    unit = resource_label(binding.unit)
    return f"{unit} {stage_label(binding.stage)}" if binding.stage else unit


def bottleneck_words(bottleneck: Bottleneck | None, *gpus: str | None, missing: str = "") -> str:
    """Name the unit nearest its peak, with its share: `HBM3 67.2 %`; or what fills it first: `FP32 (FMA pipe 70 %)`."""
    if bottleneck is None:
        return missing
    name, unit = resource_label(bottleneck.resource, *gpus), unit_label(bottleneck, *gpus)
    share = f"{unit} {percent(bottleneck.share)}"
    return share if unit.startswith(name) else f"{name} ({share})"  # an FP64 pipe says itself what fills it


def limiter_words(bound: str, resource: str | None, *gpus: str | None) -> str:
    """Name a limiter: `compute at tensor bf16`, `memory at HBM3`, `instruction issue`, `latency`."""
    if resource is None:
        return bound
    if bound == "balanced":
        return f"near two limits ({resource_label(resource, *gpus)} nearest)"
    if resource == "issue":
        return f"{resource_label(resource)}{'?' if is_open(bound) else ''}"
    return f"{bound} at {resource_label(resource, *gpus)}"


def busy_words(bottleneck: Bottleneck, *gpus: str | None) -> str:
    """Say how busy the busiest unit is: `FMA pipe 70 % busy`; without a name if unknown."""
    share = f"{percent(bottleneck.share)} busy"
    return f"{unit_label(bottleneck, *gpus)} {share}" if bottleneck.resource else share


def unit_label(bottleneck: Bottleneck, *gpus: str | None) -> str:
    """Name the unit whose share a bottleneck has, whatever fills it."""
    return resource_label(bottleneck.unit or bottleneck.resource, *gpus)


def sides_words(sides: Sequence[Bottleneck | None], *gpus: str | None, missing: str = "") -> str:
    """Name one or both sides with their shares; two nameless ones share one mention."""
    shares = [side.share for side in sides if side is not None and side.resource is None]
    if len(shares) > 1:
        return f"busiest units {' and '.join(map(percent, shares))}"
    return ", ".join(bottleneck_words(side, *gpus, missing=missing) for side in sides)


def bytes_part(level: Level) -> str:
    """Write which part of a level's roof its bytes are, where a stage of it is busier than that; else empty."""
    if level.binding_stage is None or not level.bytes_per_s or not level.peak_bytes_per_s:
        return ""
    return percent(level.bytes_per_s / level.peak_bytes_per_s)


def level_share_words(level: Level) -> str:
    """Write how busy a level is; if a stage sets that, name it, and give the bytes as a share of their roof."""
    share, stage, by_bytes = percent(level.share or 0.0), level.binding_stage, bytes_part(level)
    what = stage_label(stage) if stage in STAGE_WORDS else f"{stage_label(stage)} stage" if stage else ""
    if fabric := fabric_words(level):
        share, what = (f"at most {share}", fabric) if stage == L2_INTERNAL else (share, f"{what}; {fabric}")
    return f"{share} ({what}{f'; by bytes {by_bytes}' if by_bytes else ''})" if stage else share


def fabric_words(level: Level) -> str:
    """Write NVIDIA's own per cent of an L2 in halves, which counts the fabric between them; empty where that is it."""
    own = level.stages.get(L2_INTERNAL, 0.0)
    is_more = level.share is not None and own > level.share + SAME_SHARE
    return f"{percent(own)} in ncu, with the fabric between its halves" if is_more else ""


def spoken(resource: str | None, gpu: str | None) -> str:
    """Name a unit as a sentence does: `the ALU pipe`, `shared memory`."""
    if resource is None:
        return "a unit that the report does not name"
    label = resource_label(resource, gpu)
    return _SPOKEN.get(resource) or (f"the {label}" if resource in PIPE_LABELS else label)
