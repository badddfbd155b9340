from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from support.traces import Event, host, kernel, launch, write_trace

from rooflens.cli.group import main
from rooflens.model.program.ranks import Joined, joined
from rooflens.programs import read_programs
from rooflens.report.data import traces_document, traces_schema_text

RANKS, STEPS = 8, 6
STEP = (
    ("embed", "aten::embedding", 80),
    ("gemm", "aten::mm", 300),
    ("gemm_2", "aten::addmm", 200),
    ("norm", "aten::layer_norm", 40),
)
"""Kernels of a step: name, operator, microseconds."""

SENT_US = 60
"""A collective takes so long when the last rank has come."""


def write_ranks(
    folder: Path, slow: dict[tuple[int, str], float] | None = None, late: dict[tuple[int, int], int] | None = None
) -> list[Path]:
    """Write a step of eight ranks several times, each with a clock of its own.

    Args:
        folder: Where to.
        slow: How many times as long a kernel takes on a rank.
        late: For how many microseconds the host of a rank is late in a step, before its third kernel.
    """
    slow, late = slow or {}, late or {}
    events: list[list[Event]] = [[] for _ in range(RANKS)]
    ends_us = 0.0
    for step in range(STEPS):
        arrive_us = []
        for rank in range(RANKS):
            at_us = ends_us + 3 + rank % 3
            for place, (name, operator, usual_us) in enumerate(STEP):
                call = 1000 * step + 10 * place + 1
                took_us = usual_us * slow.get((rank, name), 1.0)
                if place == 2:
                    pause_us = late.get((rank, step), 0)
                    at_us += pause_us
                    if pause_us:
                        events[rank].append(host("cpu_op", "aten::item", at_us - pause_us - 20, pause_us))
                events[rank] += [
                    host("cpu_op", operator, at_us - 15, 6, **{"Input Dims": [[8, 8]], "Input type": ["float"]}),
                    launch(at_us - 14, call),
                    kernel(name, at_us, took_us, correlation=call),
                ]
                at_us += took_us + 2
            arrive_us.append(at_us)
        ends_us = max(arrive_us) + SENT_US
        for rank in range(RANKS):
            args: dict[str, Any] = {
                "Collective name": "allreduce",
                "In msg nelems": 1 << 20,
                "Out msg nelems": 1 << 20,
                "Group size": RANKS,
                "dtype": "Float",
                "Process Group Name": "0",
                "Process Group Ranks": str(list(range(RANKS))),
            }
            events[rank].append(
                kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", arrive_us[rank], ends_us - arrive_us[rank], **args)
            )
    paths = []
    for rank, own in enumerate(events):
        skewed = [one | {"ts": one["ts"] + 1_000_000 * (rank + 1) ** 2} for one in own]
        info = {"backend": "nccl", "rank": rank, "world_size": RANKS}
        paths.append(write_trace(folder / f"rank{rank}.json", skewed, distributedInfo=info))
    return paths


def read(paths: list[Path]) -> Joined:
    """Read the traces as one program."""
    return joined(read_programs(paths))


def test_a_slow_operator_of_one_of_eight_ranks_is_named_with_its_rank(tmp_path: Path) -> None:
    """A product that takes 1.4 times as long on rank 5 is named, with the time that it takes there and elsewhere."""
    paths = write_ranks(tmp_path, slow={(5, "gemm"): 1.4})
    whole = read(paths)
    late = whole.waited_for
    assert late is not None
    assert late.slower is not None
    assert (late.rank.program.rank, late.reason, late.kernel, late.operator) == (5, "kernels", "gemm", "aten::mm")
    assert late.time_ns == pytest.approx(STEPS * 420_000)
    assert late.usual_ns == pytest.approx(STEPS * 300_000)
    assert late.rank.late_ns == pytest.approx(STEPS * 120_000, rel=0.02)
    assert [one.program.rank for one in whole.ranks] == [*range(RANKS)]
    assert [one.compared for one in whole.ranks] == [STEPS] * RANKS
    others = [one for one in whole.ranks if one.program.rank != 5]
    assert all((one.late_ns or 0) < STEPS * 5_000 for one in others)
    assert all((one.waits_ns or 0) > STEPS * 115_000 for one in others)
    assert late.rank.waits_ns == 0
    shown = " ".join(CliRunner().invoke(main, [*map(str, paths)]).stdout.replace("\u00a0", " ").split())
    assert "All wait for rank 5, rank5.json: it comes 726 µs late in all, over 6 collectives." in shown
    assert "gemm, of aten::mm, takes 2.52 ms there, 1.80 ms elsewhere." in shown


def test_a_late_host_is_named_and_not_the_peers_that_wait_for_it(tmp_path: Path) -> None:
    """The host of rank 3 is late by 4 ms in one step: rank 3 is named, its GPU was idle, and no kernel is blamed."""
    paths = write_ranks(tmp_path, late={(3, 2): 4000})
    whole = read(paths)
    late = whole.waited_for
    assert late is not None
    assert (late.rank.program.rank, late.reason, late.slower) == (3, "host", None)
    assert late.more_ns == pytest.approx(4_000_000, rel=0.01)
    assert late.rank.late_ns == pytest.approx(4_000_000, rel=0.01)
    assert late.operator == "aten::item"
    shown = " ".join(CliRunner().invoke(main, [*map(str, paths)]).stdout.replace("\u00a0", " ").split())
    assert "All wait for rank 3, rank3.json: it comes 4.00 ms late in all, over 6 collectives." in shown
    assert "Its GPU is idle for 4.00 ms more before these: the host is late, in aten::item." in shown


def test_ranks_that_come_together_are_waited_for_by_nobody(tmp_path: Path) -> None:
    """Microseconds of jitter are no reason; and neither is a kernel that all ranks run as slowly."""
    assert read(write_ranks(tmp_path)).waited_for is None
    slow = {(rank, "gemm"): 3.0 for rank in range(RANKS)}
    assert read(write_ranks(tmp_path, slow)).waited_for is None


def test_both_of_two_slow_ranks_are_late_and_the_slower_one_is_named(tmp_path: Path) -> None:
    """Lateness counts from the median of the others, so that a second late rank does not hide the first."""
    whole = read(write_ranks(tmp_path, {(1, "norm"): 5.0, (6, "gemm_2"): 2.0}))
    late_ns = {one.program.rank: one.late_ns or 0 for one in whole.ranks}
    assert late_ns[1] == pytest.approx(STEPS * 160_000, rel=0.03)
    assert late_ns[6] == pytest.approx(STEPS * 200_000, rel=0.03)
    assert whole.waited_for is not None
    assert (whole.waited_for.rank.program.rank, whole.waited_for.operator) == (6, "aten::addmm")


def test_collectives_whose_counts_differ_are_not_compared(tmp_path: Path) -> None:
    """A rank with one collective less is left out; where no two agree, far less communication tells."""
    paths = write_ranks(tmp_path, late={(3, 2): 4000})
    trace = json.loads(paths[7].read_text())
    trace["traceEvents"] = trace["traceEvents"][:-1]
    paths[7].write_text(json.dumps(trace))
    whole = read(paths)
    assert [one.compared for one in whole.ranks] == [STEPS] * 7 + [0]
    assert whole.ranks[7].late_ns is None
    assert whole.waited_for is not None
    assert whole.waited_for.rank.program.rank == 3
    two = read([paths[3], paths[7]])
    assert [one.waits_ns for one in two.ranks] == [None, None]
    assert two.waited_for is not None
    assert (two.waited_for.rank.program.rank, two.waited_for.rank.late_ns) == (3, None)


def test_json_has_the_ranks_and_the_one_that_is_waited_for(tmp_path: Path) -> None:
    """The document of several traces fits its schema, and has the same ranks, rank by rank."""
    document = json.loads(json.dumps(traces_document(read_programs(write_ranks(tmp_path, {(5, "gemm"): 1.4})))))
    jsonschema.validate(document, json.loads(traces_schema_text()))
    assert [one["rank"] for one in document["ranks"]] == [*range(RANKS)]
    assert {key: document["waited_for"][key] for key in ("rank", "reason", "operator")} == {
        "rank": 5,
        "reason": "kernels",
        "operator": "aten::mm",
    }
    first = document["ranks"][0]
    assert first["kernels_ns"] == STEPS * 620_000
    assert first["exposed_ns"] + first["hidden_ns"] == document["traces"][0]["communication"]["time_ns"]


def test_traces_that_do_not_tell_their_rank_are_not_set_side_by_side(tmp_path: Path) -> None:
    """Two traces of one rank, as before and after a change, wait for nobody."""
    paths = write_ranks(tmp_path, {(5, "gemm"): 1.4})
    assert read([paths[5], paths[5]]).ranks == ()
    document = traces_document(read_programs([paths[5], paths[5]]))
    assert (document["ranks"], document["waited_for"]) == ([], None)
