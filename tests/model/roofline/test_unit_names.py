from __future__ import annotations

from support.loops import for_all

from rooflens.model.records import LEVELS, Level
from rooflens.model.roofline.unit_names import level_share_words, resource_label
from rooflens.model.roofline.units import PIPE_ROWS


@for_all(
    "resource, label",
    [
        ("dram", "DRAM"),
        ("l2", "L2"),
        ("smem", "SMEM"),
        ("issue", "instruction issue"),
        ("xu", "XU pipe"),
        ("tensor_bf16", "tensor bf16"),
        ("tensor_fp16_acc16", "tensor fp16 acc16"),
        ("fp32", "FP32"),
        (None, "busiest unit"),
    ],
)
def test_resources_have_names_for_people(resource: str | None, label: str) -> None:
    """Levels and pipes have their usual names."""
    assert resource_label(resource) == label


@for_all("resource", [*LEVELS, *(row.key for row in PIPE_ROWS)])
def test_no_resource_shows_its_key(resource: str) -> None:
    """Every level and every pipe of the table has a name."""
    assert resource_label(resource) != resource


@for_all(
    "stages, said",
    [
        ({"tag": 0.63, "internal": 0.85}, "63 % (tag stage; 85 % in ncu, with the fabric between its halves)"),
        ({"tag": 0.40, "internal": 0.85}, "at most 63 % (85 % in ncu, with the fabric between its halves)"),
        ({"tag": 0.40, "internal": 0.63}, "63 % (internal stage)"),
    ],
)
def test_both_per_cents_of_an_l2_in_halves_are_said(stages: dict[str, float], said: str) -> None:
    """That of ncu counts the fabric: the stage that the share is of is named, and where none has it, it is a bound."""
    assert level_share_words(Level(share=0.63, stages=stages)).replace("\u00a0", " ") == said
