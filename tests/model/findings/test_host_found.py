"""The finding about data in host memory: how busy its link is, and what else the kernel does."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from support.findings import at_limiter, findings_of, make_facts, unsaid
from support.roofs import own_roof

from rooflens.model.findings.memory import host_memory

LINK = {"host_link_peak_bytes_per_s": 8e9}
FILLS = {"host_fill_share": 0.003, "device_fill_share": 0.001}


def _read(share: float, **changes: float) -> dict[str, float]:
    """Return the counters of a kernel of 1 ms that reads 8 MB, at this share of a link of 8 GB/s."""
    return {**LINK, **FILLS, "host_read_bytes": share * 8e6, **changes}


@pytest.mark.parametrize(
    ("share", "severity"), [(0.04, None), (0.06, "contributes"), (0.24, "contributes"), (0.25, "limiter")]
)
def test_a_quarter_of_the_link_limits_a_kernel_that_waits(share: float, severity: str | None) -> None:
    """Single sectors reach 30 % of PCIe; from a twentieth on the link is a note if most fills cross it."""
    found = host_memory(make_facts(_read(share)))
    assert (found.severity if found else None) == severity


def test_rate_share_and_part_stand_in_the_move() -> None:
    """2.4 MB in 1 ms are 2.4 GB/s, 30 % of 8 GB/s; 3 of 4 sectors of the fills come from the host."""
    found = host_memory(make_facts(_read(0.30), {"l1": 0.2}))
    assert found is not None
    assert (
        "2.40 GB/s are read from the host's memory, 30 % of what its link carries in that direction; 75 % of"
        in found.move
    )
    assert unsaid(found.evidence, found.move) == []
    assert (found.confidence, found.gain) == ("high", pytest.approx(5.0))


def test_the_larger_direction_is_said() -> None:
    """4 MB written in 1 ms use half of the link; the 0.4 MB read use a twentieth."""
    found = host_memory(make_facts(_read(0.05, host_write_bytes=4e6)))
    assert found is not None
    assert "4.00 GB/s are written to the host's memory, 50 % of" in found.move


@pytest.mark.parametrize(
    ("counters", "device"),
    [
        (_read(0.001), {}),
        ({**LINK, **FILLS, "host_read_bytes": 60_000.0, "duration_ns": 10_000.0}, {}),
        (_read(0.20, device_fill_share=0.1), {}),
        (_read(0.5), {"compute_capability": "8.7"}),
        ({}, {}),
    ],
    ids=["arguments", "short launch", "mostly DRAM", "one memory for both", "not counted"],
)
def test_what_every_kernel_reads_from_the_host_is_not_said(counters: dict[str, float], device: dict[str, Any]) -> None:
    """Arguments, 60 kB of the profiler, a small part of the fills, and chips without DRAM give no finding."""
    assert host_memory(make_facts(counters, kernel=device)) is None


@pytest.mark.parametrize(("dram", "severity"), [(0.65, "contributes"), (0.85, "note")])
def test_a_fuller_dram_is_the_wall(dram: float, severity: str) -> None:
    """Half a link beside DRAM at 65 % contributes; beside DRAM at its roof it is a note."""
    found = host_memory(make_facts(_read(0.5), {"dram": dram}, **at_limiter("dram", dram)))
    assert found is not None
    assert found.severity == severity


def test_a_fuller_link_limits_behind_a_wall() -> None:
    """The link at 80 % is closer to its peak than DRAM at 65 %."""
    found = host_memory(make_facts(_read(0.8), {"dram": 0.65}, **at_limiter("dram", 0.65)))
    assert found is not None
    assert found.severity == "limiter"


def test_the_speedup_leaves_dram_the_bytes_and_the_other_waits() -> None:
    """2.4 GB/s more for a DRAM of 10 GB/s at 10 % give 34 %; 40 % of the time in memory waits leave the other 60 %."""
    facts = make_facts(_read(0.3), {"dram": 0.1})
    dram = replace(facts.levels["dram"], roof=own_roof(10e9, "byte"))
    roomy = host_memory(replace(facts, levels={**facts.levels, "dram": dram}))
    assert roomy is not None
    assert roomy.gain == pytest.approx(1 / 0.34)
    waits = {"stalls": {"long_scoreboard": 0.4, "wait": 0.6}}
    waiting = host_memory(make_facts(_read(0.3), {"dram": 0.1}, kernel=waits))
    assert waiting is not None
    assert waiting.gain == pytest.approx(1 / 0.6)


@pytest.mark.parametrize(("gpu", "share"), [("NVIDIA A100-PCIE-40GB", "25 %"), ("a GPU nobody knows", None)])
def test_without_attributes_the_datasheet_gives_the_link(gpu: str, share: str | None) -> None:
    """8 MB in 1 ms are 25 % of PCIe 4 x16's 32 GB/s; for an unknown link only rate and part are known."""
    found = host_memory(make_facts({**FILLS, "host_read_bytes": 8e6}, kernel={"gpu": gpu}))
    assert found is not None
    assert found.severity == ("limiter" if share else "contributes")
    assert ("of what its link carries" in found.move) is (share is not None)
    assert share is None or f"{share} of what its link carries" in found.move
    assert unsaid(found.evidence, found.move) == []


def test_a_link_that_would_be_over_full_is_not_known() -> None:
    """A driver that states the rate of an idle link would make it 150 % busy, so no share is given."""
    found = host_memory(make_facts(_read(1.5)))
    assert found is not None
    assert "of what its link carries" not in found.move


def test_it_comes_before_the_wait_that_it_causes() -> None:
    """More loads in flight do not help if the link is full, so the copy comes first."""
    counters = _read(0.3, warp_latency_cycles=20.0, stall_long_scoreboard_cycles=16.0)
    ids = [finding.id for finding in findings_of(make_facts(counters, {"issue": 0.1}))]
    assert ids[:2] == ["host_memory", "stall_long_scoreboard"]
