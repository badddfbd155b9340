"""Hold the direct reader to what NVIDIA's module says, where published reports do not show it: odd and damaged ones."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from support.damage import flipped_copies
from support.ncu_rep_writer import Instances, KernelSpec, NvtxRange, ReportSpec, RuleText, encode_report

from rooflens.errors import InputError
from rooflens.ingest.messages.messages import message
from rooflens.ingest.reports import direct, read
from rooflens.ingest.reports.encoded import UnknownContentError, whole_number
from rooflens.ingest.reports.ncu_reader import read_with_nvidia
from rooflens.ingest.reports.read import differences_of, read_bytes, read_parts, read_report
from rooflens.ingest.reports.report import MOST_IN_TEXT, ReadOptions, Report

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

EVERYTHING = ReadOptions(raw="all")
START = 0x7F00_0000_1000
BY_ADDRESS = Instances({START + 16 * number: float(number % 7) for number in range(40)}, 117.0)
METRICS = {
    "gpu__time_duration.sum": 1000.0,
    "launch__grid_size": 8,
    "launch__block_size": 128,
    "device__attribute_display_name": "NVIDIA Synthetic",
    "dram__bytes_read.sum": math.nan,
    "dram__bytes_write.sum": math.inf,
    "sass__inst_executed_per_opcode_with_modifier_all": Instances({"FFMA": 2**53 - 1, "HADD2": 7}, 9),
    "inst_executed": BY_ADDRESS,
    "smsp__pcsamp_sample_count": BY_ADDRESS,
    "launch__function_pcs": Instances({0: START, 1: START + 64}, 0),
    "pmsampling:dram__throughput.avg.pct_of_peak_sustained_elapsed": Instances(
        {i * 1000: 50.0 for i in range(40)}, 1.0
    ),
    "without_value": None,
}
RULES = [RuleText("SOLBottleneck", "SpeedOfLight", "High", "Text.")]
KERNELS = [
    KernelSpec(f"void kernel_{number}<int>(float *)", METRICS, rules=RULES, ranges=[NvtxRange("step")])
    for number in range(3)
]
REPORT = encode_report(ReportSpec(KERNELS))


def _framed(encoded: bytes) -> bytes:
    return len(encoded).to_bytes(4, "little") + encoded


def _report(
    metrics: Iterable[bytes | dict[str, Any]], names: Iterable[bytes], results: str = "NumResults", **fields: Any
) -> bytes:
    """Encode a report of one result whose metrics are given as messages, or as their bytes."""
    size = {"X": 1, "Y": 1, "Z": 1}
    kernel = dict.fromkeys(("KernelMangledName", "KernelFunctionName", "KernelDemangledName"), b"kernel")
    numbers = dict.fromkeys(("ThreadID", "APICallID", "ProgramHandle", "KernelID", "WorkDimensions"), 1)
    required = {**numbers, **kernel, "GlobalWorkOffset": size, "GridSize": size, "BlockSize": size, "Source": {}}
    is_kernel = results == "NumResults"
    kinds = {"NumResults": "ProfileResult", "NumRangeResults": "FastRangeResult", "NumGraphResults": "FastGraphResult"}
    others = {"ThreadID": 1, "APICallID": 1}
    kind = kinds.get(results, "FastCommandListResult")
    result = message(kind)(**(required if is_kernel else others), **fields)
    encoded = [one if isinstance(one, bytes) else message("MetricResult")(**one).SerializeToString() for one in metrics]
    tag = bytes([(13 if is_kernel else 4) << 3 | 2])
    payload = result.SerializeToString() + b"".join(tag + bytes([len(one)]) + one for one in encoded)
    counts = {"NumSources": 0, "NumResults": 0, "PayloadSize": len(payload) + 4, results: 1}
    header = message("BlockHeader")(**counts, StringTable={"Strings": list(names)}).SerializeToString()
    start = _framed(message("FileHeader")(Version=7).SerializeToString())
    return b"NVR\0" + start + _framed(header) + _framed(payload)


def _both(tmp_path: Path, data: bytes) -> Report:
    """Read with both readers, and hold that they say the same."""
    file = tmp_path / "some.ncu-rep"
    file.write_bytes(data)
    report = read_bytes(data, "some", EVERYTHING)
    assert list(differences_of(report, read_with_nvidia(file, "some", EVERYTHING))) == []
    return report


def _values(report: Report) -> dict[str, Any]:
    assert report.raw is not None
    rows = report.raw.to_pylist()
    kinds = ("value_double", "value_uint64", "value_string")
    return {row["name"]: next((row[kind] for kind in kinds if row[kind] is not None), None) for row in rows}


def test_every_kind_of_value_is_read_as_nvidia_reads_it(tmp_path: Path) -> None:
    """Doubles, counts, texts, NaN, infinity, no value, opcodes, addresses, samples, rules and ranges come out alike."""
    report = _both(tmp_path, REPORT)
    assert report.run.reader == "direct"
    assert [kernel.name for kernel in report.kernels] == [f"kernel_{number}<int>" for number in range(3)]
    assert report.kernels[0].warp_opcodes == {"FFMA": 2**53 - 1, "HADD2": 7}
    assert report.kernels[0].nvtx_range == "step"


def _launch(number: int) -> dict[str, Any]:
    """Return metrics like those of any other number, each with other values, and now and then something odd."""
    odd: dict[str, Any] = {
        "inst_executed": [1.0, 7, "text", None, math.nan, BY_ADDRESS][number % 6],
        "launch__grid_size": 1 << 5 * (number % 12),
        "gpu__time_duration.sum": 1000.0 + number,
        "device__attribute_display_name": "GPU " + "x" * (number % 3 * 40),
    }
    renamed = {"inst_issued": odd.pop("inst_executed")} if number % 7 == 0 else {}
    return {**METRICS, **odd, **renamed}


def test_launches_that_store_alike_are_read_as_each_alone(tmp_path: Path) -> None:
    """What is learnt of one launch is held against each other: values, kinds, sizes and names may differ."""
    kernels = [KernelSpec(f"void kernel_{number}(float *)", _launch(number)) for number in range(40)]
    data = encode_report(ReportSpec(kernels))
    report = _both(tmp_path, data)
    assert report.raw is not None
    assert report.raw.num_rows == read_bytes(data, "some", ReadOptions(raw="values")).raw.num_rows  # type: ignore[union-attr]
    for raw in ("none", "values"):
        assert read_bytes(data, "some", ReadOptions(raw=raw)).kernels == report.kernels  # type: ignore[arg-type]
    alone = [read_bytes(encode_report(ReportSpec([kernel])), "some", EVERYTHING).kernels[0] for kernel in kernels[:9]]
    assert [one.counters for one in alone] == [one.counters for one in report.kernels[:9]]


def test_scalars_can_be_forgotten_between_any_two_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that were remembered before that are still what they were."""
    monkeypatch.setattr(direct, "_MOST_KNOWN", 3)
    _both(tmp_path, encode_report(ReportSpec([KernelSpec("kernel", _launch(number)) for number in range(12)])))


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        (b"\x08\x05\x12\x02\x28\x07", 7),
        (b"\x08\x05\x12\x03\x28\x80\x01\x20\x00", 128),
        (b"\x08\x05\x12\x0a\x28" + b"\xff" * 8 + b"\x7f", (1 << 63) - 1),
        (b"\x08\x05\x12\x03\x28\x80", None),
        (b"\x08\x05\x12\x02\x28\x80", None),
        (b"\x08\x05\x12\x03\x28\x07\x07", None),
        (b"\x08\x05\x12\x02\x28\x07\x20\x01", None),
        (b"\x08\x05\x12\x02\x20\x07", None),
        (b"\x08\x05\x12", None),
        (b"\x08\x05", None),
        (b"\x08\x06\x12\x02\x28\x07", None),
    ],
)
def test_a_whole_number_is_told_undecoded_only_where_it_is_one(entry: bytes, value: int | None) -> None:
    """What is cut, has a byte too many, is of another kind or name, is left to the decoder."""
    assert whole_number(entry, {b"\x08\x05": "some"}) == (None if value is None else ("some", value))


def test_of_a_metric_stored_twice_the_last_one_counts(tmp_path: Path) -> None:
    """Whatever kind the first is: a double, a count, or one with instances."""
    number = {"NameId": 0, "MetricValue": {"DoubleValue": 1.5}}
    count = {"NameId": 0, "MetricValue": {"Uint64Value": 3}}
    table = {**number, "MetricValueList": [{"ElementValue": {"DoubleValue": 7.0}}]}
    for metrics in ([number, count], [count, number], [table, count], [count, table], [number, {"NameId": 0}]):
        last = metrics[-1].get("MetricValue", {})
        report = _both(tmp_path, _report(metrics, [b"inst_executed"]))
        assert list(_values(report).values()) == (list(last.values()) or [None])


def test_names_of_any_number_are_told_apart(tmp_path: Path) -> None:
    """One, two and three bytes of a name's number, with the kind behind and without: each double has its own name."""
    numbers = (0, 127, 128, 16_383, 16_384, 20_000)
    names = [b"m__%d.sum" % number for number in range(20_001)]
    metrics = [message("MetricResult")(NameId=n, MetricValue={"DoubleValue": n + 0.5}) for n in numbers]
    for tail in (b"", b"\x20\x00"):
        encoded = [metric.SerializeToString() + tail for metric in metrics]
        report = _both(tmp_path, _report(encoded + encoded, names))
        assert _values(report) == {f"m__{n}.sum": n + 0.5 for n in numbers}


def test_floats_and_narrow_counts_are_values_too(tmp_path: Path) -> None:
    """The kinds that no published report holds are read as well."""
    metrics = [
        {"NameId": 0, "MetricValue": {"FloatValue": 0.1}},
        {"NameId": 1, "MetricValue": {"Uint32Value": 2**32 - 1}},
        {"NameId": 2, "MetricValue": {"Uint64Value": 2**64 - 1}},
        {"NameId": 3, "MetricValue": {"StringValue": b"caf\xe9"}},
        {"NameId": 4, "MetricValue": {}},
    ]
    values = _values(_both(tmp_path, _report(metrics, [b"a", b"b", b"c", b"d", b"e"])))
    assert values == {"a": pytest.approx(0.1), "b": 2**32 - 1, "c": 2**64 - 1, "d": "caf\ufffd", "e": None}


@pytest.mark.parametrize(
    ("kind", "name"), [("NumRangeResults", "range"), ("NumCmdlistResults", "build"), ("NumGraphResults", "graph")]
)
def test_ranges_graphs_and_command_lists_are_read(tmp_path: Path, kind: str, name: str) -> None:
    """What is no kernel keeps its metrics, its rules and its name elsewhere."""
    metrics = [{"NameId": 0, "MetricValue": {"DoubleValue": 1500.0}}]
    rule = {"Identifier": b"R", "DisplayName": b"R", "SectionIdentifier": b"S"}
    text = {"Text": b"text", "Kind": 4, "Title": b"title"}
    encoded = message("RuleResult")(**rule, Body={"Items": [{"Message": text}]}).SerializeToString()
    fields = {"RuleResults": [encoded]}
    names = {"KernelFunctionName": b"build"} if name == "build" else {}
    report = _both(tmp_path, _report(metrics, [b"gpu__time_duration.sum"], kind, **fields, **names))
    (found,) = report.kernels
    assert (found.duration_ns, found.name, found.workload == "kernel") == (1500.0, name, False)
    assert [rule.message for rule in found.rules] == ["text"]


def test_samples_are_doubles_by_time(tmp_path: Path) -> None:
    """Sampled metrics have instances, and a mean or no value; what is anything else, or new, is left to NVIDIA."""
    times, values = {"CorrelationId": {"Uint64Value": 1}}, {"ElementValue": {"DoubleValue": 5.0}}
    metric = {"NameId": 0, "MetricValueList": [times | values], "Kind": 1}
    mean = metric | {"NameId": 2, "MetricValue": {"DoubleValue": 5.0}}
    report = _both(tmp_path, _report([metric, {"NameId": 1, "Kind": 1}, mean], [b"inst_executed", b"empty", b"mean"]))
    assert _values(report) == {"empty": None, "mean": 5.0}
    assert report.kernels[0].code_totals == {"warp_inst": 5.0}
    count = {"ElementValue": {"Uint64Value": 5}}
    for odd in (
        {"MetricValueList": [times | count]},
        {"MetricValueList": [values]},
        {"MetricValue": {"Uint64Value": 1}},
        {"MetricValue": {"DoubleValue": 1.0}, "MetricValueList": []},
        {"Kind": 2},
    ):
        with pytest.raises(UnknownContentError, match="metric of kind"):
            read_bytes(_report([metric | odd], [b"inst_executed"]), "some")


def test_instances_that_are_not_alike_are_read_one_by_one() -> None:
    """Counts and doubles among the values of one metric keep their order."""
    pairs = [
        {"CorrelationId": {"Uint64Value": 1}, "ElementValue": {"DoubleValue": 1.0}},
        {"CorrelationId": {"Uint64Value": 2}, "ElementValue": {"Uint64Value": 2}},
        {"CorrelationId": {"Uint64Value": 3}, "ElementValue": {"DoubleValue": 3.0}},
    ]
    data = _report([{"NameId": 0, "MetricValueList": pairs}], [b"inst_executed"])
    report = read_bytes(data, "some", EVERYTHING)
    assert report.kernels[0].code_totals == {"warp_inst": 6.0}


def test_text_among_numbers_is_left_to_nvidia() -> None:
    """Values of which some are text and some are numbers are not guessed at."""
    pairs = [{"ElementValue": {"DoubleValue": 1.0}}, {"ElementValue": {"StringValue": b"one"}}]
    with pytest.raises(UnknownContentError, match="instances that are not alike"):
        read_bytes(_report([{"NameId": 0, "MetricValueList": pairs}], [b"inst_executed"]), "some")


@pytest.mark.parametrize(
    ("metric", "unknown"),
    [
        (b"\x08\x00\x12\x09\x19\x00\x00\x00\x00\x00\x00\xf0\x3f\x28\x01", "field 5 of a metric"),
        (b"\x08\x00\x12\x03\x30\x80\x01", "field 6 of a value"),
        (b"\x08\x00\x1a\x06\x12\x04\x28\x01\x30\x01", "field 6 of a value"),
        (b"\x08\x00\x1a\x06\x12\x02\x28\x01\x18\x01", "field 3 of an instance"),
    ],
)
def test_what_no_definition_knows_is_left_to_nvidia(tmp_path: Path, metric: bytes, unknown: str) -> None:
    """A field more, wherever it could change a value: `auto` asks the module and says so, `direct` refuses."""
    data = _report([metric], [b"inst_executed"])
    with pytest.raises(UnknownContentError, match=unknown):
        read_bytes(data, "some")
    file = tmp_path / "new.ncu-rep"
    file.write_bytes(data)
    report = read_report(file, "new")
    assert report.run.reader == "ncu-report"
    assert report.notes == (f"read with NVIDIA's module: {unknown} is unknown",)
    with pytest.raises(InputError, match=unknown):
        read_report(file, "new", ReadOptions(reader="direct"))


def test_a_reader_can_be_asked_for(tmp_path: Path) -> None:
    """Either reader gives the same report, which says who read it."""
    file = tmp_path / "some.ncu-rep"
    file.write_bytes(REPORT)
    ours, theirs = (read_report(file, "some", ReadOptions(reader=reader)) for reader in ("auto", "ncu-report"))
    assert (ours.run.reader, theirs.run.reader) == ("direct", "ncu-report")
    assert list(differences_of(ours, theirs)) == []


def test_verifying_says_where_the_readers_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal answers pass; one value that is not the module's is an error that names it."""
    file = tmp_path / "some.ncu-rep"
    file.write_bytes(REPORT)
    verify = ReadOptions(verify=True)
    assert read_report(file, "some", verify).run.reader == "direct"
    theirs = read_bytes(REPORT, "some", EVERYTHING)
    kernels = (replace(theirs.kernels[0], function_name="other"), *theirs.kernels[1:])
    monkeypatch.setattr(read, "_with_nvidia", lambda *_: replace(theirs, kernels=kernels))
    with pytest.raises(InputError, match="differ in 1 place: function_name of result 0"):
        read_report(file, "some", verify)


def test_large_files_are_read_through_a_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not taken into memory gives the same report."""
    file = tmp_path / "some.ncu-rep"
    file.write_bytes(REPORT)
    whole = read_report(file, "some", EVERYTHING)
    monkeypatch.setattr(read, "_MOST_IN_MEMORY_BYTES", 100)
    monkeypatch.setattr(read, "_CHUNK_BYTES", 64)
    assert list(differences_of(read_report(file, "some", EVERYTHING), whole)) == []


def test_a_report_can_be_read_in_pieces(tmp_path: Path) -> None:
    """The pieces together hold each kernel and each value once; only those that wait for their text come last."""
    bare = {name: value for name, value in METRICS.items() if not isinstance(value, Instances)}
    kernels = [KernelSpec(f"kernel_{number}()", METRICS if number == 3 else bare) for number in range(10)]
    file = tmp_path / "some.ncu-rep"
    file.write_bytes(encode_report(ReportSpec(kernels)))
    whole = read_report(file, "some", EVERYTHING)
    pieces = list(read_parts(file, "some", EVERYTHING, kernels_at_once=4))
    assert [[kernel.index for kernel in piece.kernels] for piece in pieces] == [[0, 1, 2, 4], [5, 6, 7, 8], [9, 3]]
    together = {kernel.index: kernel for piece in pieces for kernel in piece.kernels}
    assert tuple(together[index] for index in range(10)) == whole.kernels
    assert {piece.run for piece in pieces} == {whole.run}
    tables = [piece.raw for piece in pieces if piece.raw is not None]
    assert whole.raw is not None
    assert sum(table.num_rows for table in tables) == whole.raw.num_rows


def test_only_the_longest_kernels_are_held_for_their_text(tmp_path: Path) -> None:
    """Of many kernels with instructions all but twenty are let go, the shortest first; of equals the later ones."""
    durations = [float(1000 + number % 30) for number in range(60)]
    table = {"inst_executed": BY_ADDRESS}
    kernels = [KernelSpec("kernel()", {"gpu__time_duration.sum": duration, **table}) for duration in durations]
    file = tmp_path / "some.ncu-rep"
    file.write_bytes(encode_report(ReportSpec(kernels)))
    *early, last = read_parts(file, "some", ReadOptions(reader="direct"), kernels_at_once=1)
    held = sorted(last.kernels[-MOST_IN_TEXT:], key=lambda kernel: kernel.index)
    longest = sorted(range(60), key=lambda number: (-durations[number], number))[:MOST_IN_TEXT]
    assert [kernel.index for kernel in held] == sorted(longest)
    assert sum(len(piece.kernels) for piece in early) == 40


def test_any_flipped_byte_is_an_input_error_or_harmless() -> None:
    """Damage gives an input error, a report, or something unknown: never another exception."""
    for number, (_, data) in enumerate(flipped_copies(REPORT, count=400, seed=20261122)):
        with contextlib.suppress(InputError, UnknownContentError):
            read_bytes(data, "some", EVERYTHING if number % 4 == 0 else ReadOptions())
