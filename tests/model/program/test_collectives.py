from __future__ import annotations

import csv
import gzip
import json
import random
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from support.timelines import Launched, write_export
from support.traces import Event, host, kernel, launch, write_trace

from rooflens.cli.group import main
from rooflens.model.program.communication import CollectiveLaunches, Communication, collective_of
from rooflens.programs import read_programs
from rooflens.report.data import traces_document, traces_schema_text
from rooflens.report.program.communication import collective_words

ROOT = Path(__file__).parents[3]
TIMELINES = ROOT.parent / "shared" / "outcomes" / "timelines"

PROPERTIES = [{"id": at, "name": "NVIDIA H100 80GB HBM3"} for at in range(8)]
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def said(name: str, given: int, got: int, dtype: str = "BFloat16", gpus: int = 8, **more: Any) -> dict[str, Any]:
    """Return what PyTorch's profiler writes to a kernel of NCCL.

    The names are those of `ChromeTraceLogger::appendCollectiveArgs` in libkineto/src/output_json.cpp of pytorch/kineto,
    and of torch/csrc/profiler/util.h of pytorch/pytorch.
    """
    return {
        "Collective name": name,
        "In msg nelems": given,
        "Out msg nelems": got,
        "Group size": gpus,
        "dtype": dtype,
        "In split size": "[]",
        "Out split size": "[]",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": f"{list(range(gpus))}",
        **more,
    }


def communication(path: Path, events: list[Event], **keys: Any) -> Communication:
    """Read what a written trace communicates."""
    keys = {"deviceProperties": PROPERTIES} | keys
    (program,) = read_programs([write_trace(path, [kernel("own", 0, 1), *events], **keys)])
    assert program.communication is not None
    return program.communication


def only(path: Path, events: list[Event], **keys: Any) -> CollectiveLaunches:
    """Read the one collective of a written trace."""
    (row,) = communication(path, events, **keys).collectives
    return row


SIZES = (
    ("allreduce", 1 << 20, 1 << 20, 8, "all-reduce", 2 * 7 / 8),
    ("allreduce_coalesced", 1 << 20, 1 << 20, 4, "all-reduce", 2 * 3 / 4),
    ("_allgather_base", 1 << 17, 1 << 20, 8, "all-gather", 7 / 8),
    ("all_gather_into_tensor_coalesced", 1 << 17, 1 << 20, 8, "all-gather", 7 / 8),
    ("_reduce_scatter_base", 1 << 20, 1 << 17, 8, "reduce-scatter", 7 / 8),
    ("all_to_all", 1 << 20, 1 << 20, 8, "all-to-all", 7 / 8),
    ("all_to_allv", 1 << 19, 1 << 20, 8, "all-to-all", 7 / 8),
    ("broadcast", 1 << 20, 1 << 20, 8, "broadcast", 1),
    ("_reduce_oop", 1 << 20, 1 << 20, 8, "reduce", 1),
    ("gather", 1 << 17, 1 << 20, 8, "gather", 7 / 8),
    ("scatter", 1 << 20, 1 << 17, 8, "scatter", 7 / 8),
    ("send", 1 << 20, 1 << 20, 8, "send", 1),
    ("recv", 1 << 20, 1 << 20, 8, "receive", 1),
)
"""PyTorch's name, elements given and got, ranks; the collective, and bus over algorithm bandwidth of nccl-tests."""


def test_sizes_and_bus_bandwidths_are_those_of_nccl_tests(tmp_path: Path) -> None:
    """Each collective in PyTorch's words has the size and factor of nccl-tests' doc/PERFORMANCE.md and src/*.cu."""
    wrong = []
    for name, given, got, gpus, collective, factor in SIZES:
        row = only(tmp_path / "t.json", [kernel(ALL_REDUCE, 10, 2097.152, **said(name, given, got, gpus=gpus))])
        found = row.name, row.size_bytes, row.gpus, row.dtype, row.group, row.description, row.are_gpus_assumed
        if found != (collective, 1 << 21, gpus, "bfloat16", "0", "default_pg", False):
            wrong.append(f"{name}: {found}")
        rates = row.algorithm_bytes_per_s, row.bus_bytes_per_s, row.link_bytes_per_s
        if rates != pytest.approx((1e9, factor * 1e9, 450e9)):
            wrong.append(f"{name}: {rates}")
    assert wrong == []


PUBLISHED = (
    ("dstackai/dstack examples/misc/a3high-clusters", "_allgather_base", "Float", 1048576, 16, 1432.6, 46.84, 43.92),
    ("dstackai/dstack examples/misc/a3high-clusters", "_allgather_base", "Float", 2097152, 16, 2516.9, 53.33, 49.99),
    ("github.com/NVIDIA/nccl/issues/1435", "_allgather_base", "BFloat16", 25165824, 2, 400.9, 251.11, 125.56),
    ("github.com/NVIDIA/nccl/issues/1435", "_allgather_base", "BFloat16", 4194304, 2, 108.8, 154.20, 77.10),
    ("github.com/ROCm/rccl/pull/2075", "broadcast", "Float", 16777216, 2, 9407.6, 7.13, 7.13),
)
"""Lines that nccl-tests printed: where, PyTorch's name, type, count, ranks, microseconds, algbw and busbw in GB/s."""

WORDS = {"all-reduce": "allreduce", "all-to-all": "all_to_all", "send": "send"}


def test_bandwidths_are_those_that_nccl_tests_printed(tmp_path: Path) -> None:
    """28 published lines of five collectives on 2 to 72 GPUs: each bandwidth to the digits that were printed."""
    lines = [*PUBLISHED]
    table = ROOT / "tests" / "model" / "predict" / "nccl_tests.csv"
    for row in csv.DictReader(table.read_text(encoding="utf-8").splitlines()):
        count, rates = int(row["bytes"]) // 4, (float(row["algbw_gb_per_s"]), float(row["busbw_gb_per_s"]))
        lines.append(
            (row["source"], WORDS[row["operation"]], "Float", count, int(row["gpus"]), float(row["time_us"]), *rates)
        )
    wrong = []
    for source, name, dtype, count, gpus, time_us, algorithm, bus in lines:
        got = count * gpus if name == "_allgather_base" else count
        row = only(tmp_path / "t.json", [kernel(ALL_REDUCE, 10, time_us, **said(name, count, got, dtype, gpus))])
        for found, printed in ((row.algorithm_bytes_per_s, algorithm), (row.bus_bytes_per_s, bus)):
            if found != pytest.approx(printed * 1e9, rel=1e-3):
                wrong.append(f"{source}, {name}: {found}, and not {printed}")
    assert len(lines) == 28
    assert wrong == []


ELEMENT_BYTES = {"float": 4, "int": 4, "long": 8, "unsigned char": 1, "signed char": 1}


def by_hand(path: Path, ranks: int) -> dict[tuple[str, int], list[float]]:
    """Work out size and bus bandwidth of each NCCL kernel of a raw trace: by collective and size, their GB/s.

    In traces of 2022 the range `nccl:...` around the launch on its thread says what a rank gives.
    """
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    launches = {e["args"]["correlation"]: e for e in events if e.get("cat") == "cuda_runtime" and "aunch" in e["name"]}
    ranges = [e for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("nccl:")]
    found: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for one in events:
        if one.get("cat") != "kernel" or not one["name"].startswith("nccl"):
            continue
        call = launches.get(one["args"]["correlation"])
        if call is None:
            continue
        moment = call["ts"] + call["dur"] / 2
        around = [e for e in ranges if e["tid"] == call["tid"] and e["ts"] <= moment <= e["ts"] + e["dur"]]
        (within,) = around
        (dims,), (dtype,) = within["args"]["Input Dims"], within["args"]["Input type"]
        elements = 1
        for size in dims:
            elements *= size
        name = within["name"].removeprefix("nccl:")
        size = elements * ELEMENT_BYTES[dtype] * (ranks if name == "_all_gather_base" else 1)
        factor = (2 if name == "all_reduce" else 1) * (ranks - 1) / ranks
        found[name, size].append(size / (one["dur"] * 1e-6) * factor / 1e9)
    return found


@pytest.mark.skipif(not TIMELINES.is_dir(), reason="the published timelines are not here")
@pytest.mark.parametrize(
    ("name", "ranks", "collectives"),
    [("hta_control.json.gz", 8, 25), ("hta_sampled_rank-0.json.gz", 128, 8), ("hta_sampled_rank-1.json.gz", 128, 8)],
)
def test_sizes_and_bandwidths_of_published_traces_are_those_of_a_script(
    name: str, ranks: int, collectives: int
) -> None:
    """Of every collective of a published trace the launches, the size and both bandwidths are those by hand."""
    hand = by_hand(TIMELINES / name, ranks)
    (program,) = read_programs([TIMELINES / name])
    assert program.communication is not None
    sizes: defaultdict[tuple[str, int], list[CollectiveLaunches]] = defaultdict(list)
    for row in program.communication.collectives:
        assert row.are_gpus_assumed
        assert row.gpus == ranks
        sizes[row.name.replace("-", "_"), row.size_bytes or 0].append(row)
    assert len(program.communication.collectives) == collectives
    rows = {(f"_{key[0]}_base" if key[0] == "all_gather" else key[0], key[1]): own for key, own in sizes.items()}
    assert {key: sum(one.count for one in own) for key, own in rows.items()} == {k: len(v) for k, v in hand.items()}
    for key, own in rows.items():
        best = max(one.best_bus_bytes_per_s or 0 for one in own)
        assert best == pytest.approx(1e9 * max(hand[key]), rel=1e-6), key
        if len(hand[key]) == 1:
            assert own[0].bus_bytes_per_s == pytest.approx(1e9 * hand[key][0], rel=1e-6), key


def test_the_operator_and_the_range_around_a_launch_say_what_a_kernel_does_not(tmp_path: Path) -> None:
    """A kernel without arguments has those of `record_param_comms`, else the inputs of the range `nccl:...`."""
    op = host("cpu_op", "record_param_comms", 0, 10, **said("_allgather_base", 1024, 8192))
    title = host(
        "user_annotation", "nccl:_all_gather_base", 1, 8, **{"Input Dims": [[32, 32]], "Input type": ["c10::BFloat16"]}
    )
    comes = [launch(4, 1), kernel("ncclDevKernel_AllGather_RING_LL", 20, 5, correlation=1)]
    info = {"backend": "nccl", "rank": 0, "world_size": 8}
    whole = only(tmp_path / "a.json", [op, title, *comes])
    assert (whole.name, whole.size_bytes, whole.gpus, whole.group) == ("all-gather", 16384, 8, "0")
    old = only(tmp_path / "b.json", [title, *comes], distributedInfo=info)
    assert (old.name, old.size_bytes, old.gpus, old.group, old.are_gpus_assumed) == ("all-gather", 16384, 8, None, True)
    alone = only(tmp_path / "c.json", [title, *comes])
    assert (alone.size_bytes, alone.gpus, alone.bus_bytes_per_s) == (None, None, None)
    assert collective_words(alone) == "all-gather"


@pytest.mark.parametrize(
    ("name", "collective", "algorithm", "protocol"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all-reduce", "ring", "LL"),
        ("ncclDevKernel_AllReduce_Sum_f32_TREE_LL128", "all-reduce", "tree", "LL128"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "all-reduce", "ring", "LL"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "reduce-scatter", "ring", "LL"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long, ncclWork*)", "all-gather", "ring", "LL"),
        ("ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)", "send-receive", None, None),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL", "reduce", "ring", "LL"),
        ("ncclDevKernel_Broadcast_RING_LL", "broadcast", "ring", "LL"),
        ("ncclDevKernel_Generic", "ncclDevKernel_Generic", None, None),
        ("void vllm::cross_device_reduce_1stage<__half, 8>(RankData*)", "all-reduce", None, None),
        ("nvshmemi_transfer_rma_put", "nvshmemi_transfer_rma_put", None, None),
    ],
)
def test_without_arguments_a_kernels_name_tells_the_collective(
    tmp_path: Path, name: str, collective: str, algorithm: str | None, protocol: str | None
) -> None:
    """Names of NCCL (src/device/generate.py) and vLLM tell the collective; sizes stay unknown."""
    row = only(tmp_path / "t.json", [kernel(name, 10, 5)])
    assert (row.name, row.algorithm, row.protocol) == (collective, algorithm, protocol)
    assert (row.size_bytes, row.dtype, row.gpus, row.algorithm_bytes_per_s) == (None, None, None, None)


def test_an_export_of_nsys_tells_the_collective_by_the_kernels_name(tmp_path: Path) -> None:
    """Sizes stay null, and what other kernels hide is measured, GPU by GPU."""
    launches = [
        Launched("own", 0, 100),
        Launched("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", 50, 200, stream=9),
        Launched("own", 150, 180),
        Launched("own", 0, 400, device=1),
    ]
    (program,) = read_programs([write_export(tmp_path / "t.sqlite", launches)])
    assert program.communication is not None
    (row,) = program.communication.collectives
    assert (row.name, row.size_bytes, row.exposed_ns, row.hidden_ns) == ("all-reduce", None, 70, 80)
    assert program.communication.exposed_ns == 70


def test_exposed_and_hidden_are_those_of_a_count_by_nanoseconds(tmp_path: Path) -> None:
    """Of 30 random timelines each collective's exposed time, and that of all together, is the one counted by hand."""
    chance = random.Random(5)  # noqa: S311 - no secret
    for number in range(30):
        events, spans = [], []
        for at in range(chance.randrange(5, 60)):
            waits, begin, took = chance.random() < 0.4, chance.randrange(300), chance.randrange(60)
            size = chance.choice((1, 2, 3))
            args = said("allreduce", size, size) if waits else {}
            name = ALL_REDUCE if waits else f"own_{at}"
            events.append(kernel(name, begin / 1000, took / 1000, stream=at, **args))
            spans.append((waits, size, begin, begin + took))
        if not any(waits for waits, *_ in spans):
            continue
        (program,) = read_programs([write_trace(tmp_path / f"{number}.json", events)])
        assert program.communication is not None
        others = {ns for waits, _, begin, end in spans if not waits for ns in range(begin, end)}
        alone = {ns for waits, _, begin, end in spans if waits for ns in range(begin, end)} - others
        assert program.communication.exposed_ns == len(alone)
        for row in program.communication.collectives:
            own = [(begin, end) for waits, size, begin, end in spans if waits and size * 2 == row.size_bytes]
            exposed = sum(len(set(range(*span)) - others) for span in own)
            assert (row.exposed_ns, row.hidden_ns) == (exposed, sum(end - begin for begin, end in own) - exposed)
            assert (row.count, row.best_ns) == (len(own), min(end - begin for begin, end in own))
        assert sum(row.time_ns for row in program.communication.collectives) == program.communication.time_ns
        times = [row.exposed_ns for row in program.communication.collectives]
        assert all(first >= second for first, second in pairwise(times))


@pytest.mark.parametrize(
    ("gpus", "ranks", "visible", "link"),
    [
        (8, "[0, 1, 2, 3, 4, 5, 6, 7]", 8, "NVLink 4"),
        (8, "[0, 8, 16, 24, 32, 40, 48, 56]", 8, None),
        (4, "[4, 5, 6, 7]", 8, "NVLink 4"),
        (4, "[4, 5, 6, 7]", 4, "NVLink 4"),
        (4, "[2, 3, 4, 5]", 4, None),
        (16, "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]", 8, None),
        (8, "[0, 1, 2, 3, 4, 5, 6, 7]", 1, "NVLink 4"),
        (1, "[0]", 8, None),
    ],
)
def test_a_link_stands_beside_groups_of_one_machine_only(
    tmp_path: Path, gpus: int, ranks: str, visible: int, link: str | None
) -> None:
    """Ranks are numbered machine by machine: a group of several has no datasheet's link."""
    args = said("allreduce", 1024, 1024, gpus=gpus, **{"Process Group Ranks": ranks})
    row = only(tmp_path / "t.json", [kernel(ALL_REDUCE, 10, 5, **args)], deviceProperties=PROPERTIES[:visible])
    assert row.link_name == link


ODD: tuple[dict[str, Any], ...] = (
    {"In msg nelems": -5},
    {"In msg nelems": "many", "Out msg nelems": None},
    {"Out msg nelems": 10**30},
    {"Group size": 0},
    {"Group size": [8]},
    {"Collective name": {"a": 1}},
    {"Collective name": ""},
    {"dtype": "Quantum"},
    {"dtype": 7, "Process Group Ranks": list(range(8))},
    {"Process Group Ranks": "[" + "9" * 100_000},
    {"Process Group Name": "x" * 1_000_000, "Process Group Description": "\x1b[31m<script>odd"},
)


def test_odd_arguments_are_unknown_and_steer_nothing(tmp_path: Path) -> None:
    """Damaged arguments are null or cut, in every format; none ends a command or reaches a terminal as it is."""
    for number, odd in enumerate(ODD):
        events = [kernel("own", 0, 1), kernel(ALL_REDUCE, 10, 5, **(said("allreduce", 1024, 1024) | odd))]
        titled = {"Input Dims": [[10**18] * 16] * 3, "Input type": [["float"]]}
        events += [host("user_annotation", "nccl:all_reduce", 0, 9, **titled), launch(4, 7)]
        events += [kernel("ncclKernel_AllReduce_RING_LL_Sum_float", 30, 5, correlation=7)]
        trace = write_trace(tmp_path / f"{number}.json", events, deviceProperties=PROPERTIES)
        done = CliRunner().invoke(main, [str(trace)])
        assert done.exit_code == 0, done.output
        assert "\x1b[31m" not in done.stdout
        document = traces_document(read_programs([trace]))
        jsonschema.validate(json.loads(json.dumps(document)), json.loads(traces_schema_text()))
        page = tmp_path / "page.html"
        assert CliRunner().invoke(main, ["report", str(trace), "-o", str(page), "--force"]).exit_code == 0
        assert "<script>odd" not in page.read_text(encoding="utf-8")


def test_every_face_says_the_collective_its_bandwidth_and_the_waiting(tmp_path: Path) -> None:
    """Terminal, Markdown, digest and page have the row; a median far above the best launch is said to wait."""
    args = said("all_to_all", 3_125_000, 3_125_000, "Float")
    events = [kernel(ALL_REDUCE, 100 * at, took, **args) for at, took in enumerate((50, 175, 175), 1)]
    trace = write_trace(tmp_path / "t.json", [kernel("own", 0, 1), *events], deviceProperties=PROPERTIES)
    for command in (
        [str(trace)],
        ["analyze", str(trace), "--format", "md"],
        ["analyze", str(trace), "--format", "digest"],
    ):
        text = CliRunner().invoke(main, command).stdout.replace("\u00a0", " ")
        assert "all-to-all" in text
        assert "12.5 MB" in text
        assert "62.5 GB/s" in text
        assert "219 GB/s" in text
        assert "all-to-all of 12.5 MB a call over 8 GPUs: the median launch takes 3.5x the shortest" in text
        # One rank does not show who is late.
        assert "late rank" not in text
        assert "rooflens analyze rank*.json" in text
    page = tmp_path / "page.html"
    assert CliRunner().invoke(main, ["report", str(trace), "-o", str(page)]).exit_code == 0
    assert "Communication, most exposed first" in page.read_text(encoding="utf-8")
    (program,) = read_programs([trace])
    assert program.communication is not None
    assert program.communication.collectives
    assert (
        collective_words(program.communication.collectives[0])
        == "all-to-all of 12.5 MB a call over 8 GPUs: 62.5 of 450 GB/s"
    )


def test_names_of_pytorch_and_nccl_lead_to_one_word() -> None:
    """Every name of a collective in ProcessGroupNCCL.cpp leads to nccl-tests' word; others to none."""
    known = {
        "all-reduce": "allreduce allreduce_coalesced nccl:all_reduce AllReduce nccl:all_reduce_barrier",
        "all-gather": "all_gather _allgather_base allgather_into_tensor_coalesced nccl:_all_gather_base AllGather",
        "reduce-scatter": "reduce_scatter _reduce_scatter_base reduce_scatter_tensor_coalesced ReduceScatter",
        "all-to-all": "all_to_all all_to_allv nccl:all_to_all",
        "broadcast": "broadcast _broadcast_oop Broadcast",
        "reduce": "reduce _reduce_oop Reduce",
        "barrier": "barrier",
    }
    wrong = [
        f"{name}: {collective_of(name)}"
        for word, names in known.items()
        for name in names.split()
        if collective_of(name) != word
    ]
    assert wrong == []
    assert collective_of("nccl:send 0->1") == "send"
    assert collective_of("nccl:recv 0<-1") == "receive"
    assert collective_of("nccl:coalesced") is None
    assert collective_of("wait") is None
