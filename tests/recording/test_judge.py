from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import judge
from judge import Judged, Judgement, truths
from support.loops import for_all
from support.recorded import ENTRY

GOOD = Judged(
    path=ENTRY.path,
    workload="saxpy",
    case="n28",
    verdict="memory dram",
    expected="memory dram",
    as_expected=True,
    is_whole=True,
    flop={"fp32": 1000.0},
    flop_predicted=1000.0,
    dram_bytes=1050.0,
    dram_bytes_predicted=1000.0,
    sm_clock_hz=1.98e9,
    profiled_ns=50_000.0,
    replay_passes=4,
    is_synthetic=False,
)


@for_all(
    "change, states",
    [
        ({}, {"verdict": "pass", "FLOP": "pass", "DRAM": "pass"}),
        ({"flop": {"fp32": 1002.0}}, {"FLOP": "fail"}),
        ({"flop": {"fp32": 1000.9}}, {"FLOP": "pass"}),
        ({"flop": {}}, {"FLOP": "not measured"}),
        ({"flop": {"tensor_bf16": 1000.0}}, {"FLOP": "not measured"}),
        ({"dram_bytes": 1101.0}, {"DRAM": "fail"}),
        ({"is_whole": False}, {"FLOP": "not measured", "DRAM": "not measured"}),
        ({"as_expected": False}, {"verdict": "fail"}),
        ({"case": "n16"}, {"FLOP": "pass"}),
        ({"workload": "attention", "case": "fused", "flop": {"tensor_bf16": 1000.0, "fp32": 90.0}}, {"FLOP": "pass"}),
    ],
)
def test_what_must_be_so(change: Mapping[str, object], states: Mapping[str, str]) -> None:
    """FLOPs must agree within 0.1 %, saxpy's bytes within 10 %, and the verdict; a lower bound proves nothing."""
    found = {truth.name.split()[0]: truth.state for truth in truths(Judgement([replace(GOOD, **change)]))}
    assert {name: found[name] for name in states} == dict(states)
    assert ("DRAM" in found) == (not {"case", "workload"} & change.keys())


def test_causal_attention_has_no_exact_flops() -> None:
    """Its kernels work in tiles, so only the verdict is checked."""
    causal = replace(GOOD, workload="attention", case="fused_causal")
    assert [truth.name for truth in truths(Judgement([causal], {"x": "damaged"}))] == [
        "verdict of attention fused_causal",
        "report x",
    ]


def test_the_table_marks_what_was_not_expected() -> None:
    """Each recording has a row, in which lower bounds and missing numbers are marked."""
    odd = replace(GOOD, as_expected=False, verdict="latency", is_whole=False, dram_bytes=None)
    lines = judge.table(Judgement([GOOD, odd])).splitlines()
    assert " ".join(lines[1].split()) == "saxpy n28 memory dram memory dram as expected 1.0000 1.0500"
    assert " ".join(lines[2].split()) == "saxpy n28 latency memory dram NOT as expected >= 1.0000 -"


@for_all(
    "verdict, expected, agree",
    [
        (("compute", "tensor_bf16_wgmma"), ("compute", "tensor_bf16"), True),
        (("compute", "fp32"), ("compute", "fp32"), True),
        (("latency", None), ("latency", None), True),
        (("memory", "l2"), ("memory", "dram"), False),
        (("memory", "l2"), ("memory", "l"), False),
        (("latency", None), ("memory", "dram"), False),
    ],
)
def test_verdicts_agree(verdict: tuple[str, str | None], expected: tuple[str, str | None], agree: bool) -> None:  # noqa: FBT001 - a table
    """Class and resource must agree; the expected pipe may be split by instruction."""
    assert judge._agree(verdict, expected) == agree
