from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.loops import for_all

from rooflens.model.records import Level, Limit, Nvidia, Rule, Verdict
from rooflens.model.verdict.nvidia_rules import SAME_CLASSES, agrees, read_nvidia
from rooflens.model.verdict_classes import BOUNDS

ROOFLINE = (
    "The ratio of peak float (fp32) to double (fp64) performance on this device is 2:1. The {subject} achieved "
    "{fp32}% of this device's fp32 peak performance and {fp64}% of its fp64 peak performance."
)


def rule(identifier: str, title: str = "", message: str = "") -> Rule:
    """Make a rule result of the Speed-Of-Light section."""
    return Rule(identifier, "SpeedOfLight", title, message)


def test_no_rules_say_nothing() -> None:
    """A report without rules has no NVIDIA verdict."""
    assert read_nvidia([]) == Nvidia()
    assert (
        read_nvidia([rule("CPIStall", "Long Scoreboard Stalls", "achieved 9% of this device's fp32 peak")]) == Nvidia()
    )


@pytest.mark.parametrize(
    ("fp32", "fp64", "expected"),
    [
        ("41", "3", (41, 3)),
        ("close to 0", "0", (0, 0)),
        ("close to 0", "close to 0", (0, 0)),
        ("12.5", "0.25", (12.5, 0.25)),
    ],
)
@pytest.mark.parametrize("subject", ["kernel", "workload"])
def test_per_cents_of_the_peaks(subject: str, fp32: str, fp64: str, expected: tuple[float, float]) -> None:
    """The roofline rule states the achieved per cent of both peaks; `close to 0` is read as zero."""
    found = read_nvidia(
        [rule("SOLFPRoofline", "Roofline Analysis", ROOFLINE.format(subject=subject, fp32=fp32, fp64=fp64))]
    )
    assert (found.fp32_pct_of_peak, found.fp64_pct_of_peak) == expected
    assert found.bottleneck is None


def test_published_figures_keep_the_per_cents() -> None:
    """Figures that omit NVIDIA's sentence state the same two numbers in our words."""
    found = read_nvidia([rule("SOLFPRoofline", "Roofline Analysis", "fp32 12.5 %, fp64 3 % of peak")])
    assert (found.fp32_pct_of_peak, found.fp64_pct_of_peak) == (12.5, 3)


def test_roofline_rule_without_numbers() -> None:
    """A rule without per cents gives none."""
    assert read_nvidia([rule("SOLFPRoofline", "Roofline Analysis", "No floating point operations.")]) == Nvidia()


@for_all(
    "title, message, expected",
    [
        ("High Throughput", "text", "High Throughput"),
        ("", "This kernel exhibits low compute throughput and memory bandwidth utilization", "Latency Issue"),
        ("", "This kernel grid is too small to fill the available resources", "Small Grid"),
        ("", "utilizing greater than 80.0% of the available compute or memory performance", "High Throughput"),
        ("", "Compute is more heavily utilized than Memory: Look at", "High Compute Throughput"),
        ("", "Memory is more heavily utilized than Compute: Look at", "High Memory Throughput"),
        ("", "Compute and Memory are well-balanced: To reduce", "Balanced Throughput"),
        ("", "something else", None),
        ("", "", None),
    ],
)
def test_bottleneck_is_the_title_or_the_phrase_of_old_versions(title: str, message: str, expected: str | None) -> None:
    """Old versions have no title: a phrase of their text corresponds to the title of later versions."""
    assert read_nvidia([rule("SOLBottleneck", title, message)]).bottleneck == expected


def test_the_first_bottleneck_counts() -> None:
    """The first rule result with a class is used."""
    rules = [
        rule("SOLBottleneck", "", "?"),
        rule("SOLBottleneck", "Small Grid"),
        rule("SOLBottleneck", "Latency Issue"),
    ]
    assert read_nvidia(rules).bottleneck == "Small Grid"


def verdict(bound: str, *, at_roof: bool = False) -> Verdict:
    """Make a verdict of a class."""
    return Verdict(bound, None, at_roof=at_roof, cause=None, limit=Limit(), confidence="high")  # type: ignore[arg-type]


@for_all(
    "bottleneck, bound, at_roof, expected",
    [
        ("High Memory Throughput", "memory", False, True),
        ("High Memory Throughput", "compute", False, False),
        ("High Throughput", "memory", True, True),
        ("High Throughput", "memory", False, False),
        ("Balanced Throughput", "balanced", False, True),
        ("Latency Issue", "overhead", False, True),
        ("Small Grid", "latency", False, True),
        ("Small Grid", "unknown", False, False),
        ("Something new", "memory", False, None),
        (None, "memory", False, None),
    ],
)
def test_agreement(bottleneck: str | None, bound: str, at_roof: bool, expected: bool | None) -> None:  # noqa: FBT001 - a table
    """A class agrees with NVIDIA's of the same meaning; an unknown or missing bottleneck is not judged."""
    assert agrees(bottleneck, verdict(bound, at_roof=at_roof), Level()) is expected


@pytest.mark.parametrize(("stages", "expected"), [({"data": 0.6, "lsu_input": 0.7}, True), ({"data": 0.7}, False)])
def test_balanced_is_memory_where_load_and_store_instructions_lead(stages: dict[str, float], *, expected: bool) -> None:
    """NVIDIA counts them on both sides, so its balanced is a limiter at L1's input, and at no other stage."""
    at_l1 = replace(verdict("memory", at_roof=False), resource="l1")
    assert agrees("Balanced Throughput", at_l1, Level(share=0.7, stages=stages)) is expected


def test_each_class_of_nvidia_means_classes_of_ours() -> None:
    """All classes in the table exist."""
    assert {name for same in SAME_CLASSES.values() for name in same} <= {*BOUNDS, "at_roof"}
