"""Compare our reader with NVIDIA's module on unusual and damaged reports, of which none is published."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.damage import flipped_copies
from support.ncu_rep_writer import Instances, KernelSpec, NvtxRange, ReportSpec, Rule, encode_report
from support.nvidia_reads import read_with_nvidia
from support.same_report import differences_of

from rooflens.errors import InputError
from rooflens.ingest.messages.messages import message
from rooflens.ingest.reports import protobuf, read
from rooflens.ingest.reports.container import Outline, ResultSpan
from rooflens.ingest.reports.protobuf import ResultReader
from rooflens.ingest.reports.read import read_bytes, read_report
from rooflens.ingest.reports.report import MOST_IN_TEXT, ReadOptions, ReadReport

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
RULES = [Rule("SOLBottleneck", "SpeedOfLight", "High", "Text.")]
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
    """Encode a report of one result; its metrics are given as messages or as their bytes."""
    size = {"X": 1, "Y": 1, "Z": 1}
    kernel = dict.fromkeys(("KernelMangledName", "KernelFunctionName", "KernelDemangledName"), b"kernel")
    numbers = dict.fromkeys(("ThreadID", "APICallID", "ProgramHandle", "KernelID", "WorkDimensions"), 1)
    required = {**numbers, **kernel, "GlobalWorkOffset": size, "GridSize": size, "BlockSize": size, "Source": {}}
    is_kernel = results == "NumResults"
    kinds = {"NumResults": "ProfileResult", "NumRangeResults": "RangeResult", "NumGraphResults": "GraphResult"}
    others = {"ThreadID": 1, "APICallID": 1}
    kind = kinds.get(results, "CommandListResult")
    result = message(kind)(**(required if is_kernel else others), **fields)
    encoded = [one if isinstance(one, bytes) else message("MetricResult")(**one).SerializeToString() for one in metrics]
    tag = bytes([(13 if is_kernel else 4) << 3 | 2])
    payload = result.SerializeToString() + b"".join(tag + bytes([len(one)]) + one for one in encoded)
    counts = {"NumSources": 0, "NumResults": 0, "PayloadSize": len(payload) + 4, results: 1}
    header = message("BlockHeader")(**counts, StringTable={"Strings": list(names)}).SerializeToString()
    start = _framed(message("FileHeader")(Version=7).SerializeToString())
    return b"NVR\0" + start + _framed(header) + _framed(payload)


def _both(tmp_path: Path, data: bytes) -> ReadReport:
    """Read a report with both readers and check that their answers are equal."""
    file = tmp_path / "some.ncu-rep"
    file.write_bytes(data)
    report = read_bytes(data, "some", EVERYTHING)
    assert list(differences_of(report, read_with_nvidia(file, "some", EVERYTHING))) == []
    return report


def _values(report: ReadReport) -> dict[str, Any]:
    assert report.raw is not None
    rows = report.raw.to_pylist()
    kinds = ("value_double", "value_uint64", "value_string")
    return {row["name"]: next((row[kind] for kind in kinds if row[kind] is not None), None) for row in rows}


def test_every_kind_of_value_is_read_as_nvidia_reads_it(tmp_path: Path) -> None:
    """Doubles, counts, texts, NaN, infinity, no value, opcodes, addresses, samples, rules and ranges come out equal."""
    report = _both(tmp_path, REPORT)
    assert report.run.reader == "direct"
    assert [kernel.name for kernel in report.kernels] == [f"kernel_{number}<int>" for number in range(3)]
    assert report.kernels[0].warp_opcodes == {"FFMA": 2**53 - 1, "HADD2": 7}
    assert report.kernels[0].nvtx_range == "step"


def _launch(number: int) -> dict[str, Any]:
    """Return the same metrics for any number, with other values and occasionally something unusual."""
    odd: dict[str, Any] = {
        "inst_executed": [1.0, 7, "text", None, math.nan, BY_ADDRESS][number % 6],
        "launch__grid_size": 1 << 5 * (number % 12),
        "gpu__time_duration.sum": 1000.0 + number,
        "device__attribute_display_name": "GPU " + "x" * (number % 3 * 40),
    }
    renamed = {"inst_issued": odd.pop("inst_executed")} if number % 7 == 0 else {}
    return {**METRICS, **odd, **renamed}


def test_launches_that_store_alike_are_read_as_each_alone(tmp_path: Path) -> None:
    """What the reader learnt of one launch is verified for the next: values, kinds, sizes and names may differ."""
    kernels = [KernelSpec(f"void kernel_{number}(float *)", _launch(number)) for number in range(40)]
    data = encode_report(ReportSpec(kernels))
    report = _both(tmp_path, data)
    assert report.raw is not None
    assert report.raw.num_rows == read_bytes(data, "some", ReadOptions(raw="values")).raw.num_rows  # type: ignore[union-attr]
    for raw in ("none", "values"):
        assert read_bytes(data, "some", ReadOptions(raw=raw)).kernels == report.kernels  # type: ignore[arg-type]
    alone = [read_bytes(encode_report(ReportSpec([kernel])), "some", EVERYTHING).kernels[0] for kernel in kernels[:9]]
    assert [one.counters for one in alone] == [one.counters for one in report.kernels[:9]]


def test_of_a_metric_stored_twice_the_last_one_counts(tmp_path: Path) -> None:
    """The last value counts, whether the first is a double, a count or a metric with instances."""
    number = {"NameId": 0, "MetricValue": {"DoubleValue": 1.5}}
    count = {"NameId": 0, "MetricValue": {"Uint64Value": 3}}
    table = {**number, "MetricValueList": [{"ElementValue": {"DoubleValue": 7.0}}]}
    for metrics in ([number, count], [count, number], [table, count], [count, table], [number, {"NameId": 0}]):
        last = metrics[-1].get("MetricValue", {})
        report = _both(tmp_path, _report(metrics, [b"inst_executed"]))
        assert list(_values(report).values()) == (list(last.values()) or [None])


def test_a_result_without_metrics_is_a_kernel(tmp_path: Path) -> None:
    """A result with only a name is read as a kernel."""
    report = _both(tmp_path, _report([], []))
    assert [(kernel.name, kernel.counters) for kernel in report.kernels] == [("kernel", {})]


def test_names_of_any_number_are_told_apart(tmp_path: Path) -> None:
    """Names whose numbers take one, two or three bytes, with the kind after it or without, are told apart."""
    numbers = (0, 127, 128, 16_383, 16_384, 20_000)
    names = [b"m__%d.sum" % number for number in range(20_001)]
    metrics = [message("MetricResult")(NameId=n, MetricValue={"DoubleValue": n + 0.5}) for n in numbers]
    for tail in (b"", b"\x20\x00"):
        encoded = [metric.SerializeToString() + tail for metric in metrics]
        report = _both(tmp_path, _report(encoded + encoded, names))
        assert _values(report) == {f"m__{n}.sum": n + 0.5 for n in numbers}


def test_floats_and_narrow_counts_are_values_too(tmp_path: Path) -> None:
    """Kinds of values that no published report contains are read as well."""
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
    """Ranges, graphs and command lists, too, keep their metrics, rules and names, each where its kind stores them."""
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
    """Sampled metrics with instances and a mean, or no value, are read; any other or new form is not."""
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
        _check_unread(_report([metric | odd], [b"inst_executed"]))


def test_instances_that_are_not_alike_are_read_one_by_one() -> None:
    """Counts and doubles among the instances of one metric keep their order."""
    pairs = [
        {"CorrelationId": {"Uint64Value": 1}, "ElementValue": {"DoubleValue": 1.0}},
        {"CorrelationId": {"Uint64Value": 2}, "ElementValue": {"Uint64Value": 2}},
        {"CorrelationId": {"Uint64Value": 3}, "ElementValue": {"DoubleValue": 3.0}},
    ]
    data = _report([{"NameId": 0, "MetricValueList": pairs}], [b"inst_executed"])
    report = read_bytes(data, "some", EVERYTHING)
    assert report.kernels[0].code_totals == {"warp_inst": 6.0}


def test_text_among_numbers_is_not_read() -> None:
    """Instances that mix texts and numbers are not interpreted."""
    pairs = [{"ElementValue": {"DoubleValue": 1.0}}, {"ElementValue": {"StringValue": b"one"}}]
    _check_unread(_report([{"NameId": 0, "MetricValueList": pairs}], [b"inst_executed"]))


def _check_unread(data: bytes, *notes: str) -> None:
    """Check that only this metric is not read, that its kernel says so, and that the report names it."""
    for options in (EVERYTHING, ReadOptions()):
        found = read_bytes(data, "some", options)
        (kernel,) = found.kernels
        assert (kernel.status, kernel.counters, kernel.code_totals) == ("partial", {}, {})
        assert str(kernel.status_reason).startswith("1 metric not read")
        assert str(kernel.status_reason).endswith("inst_executed")
        assert str(found.loss) == kernel.status_reason
        assert found.notes == notes
        assert found.raw is None or not found.raw.num_rows


KNOWN = b"\x08\x00\x12\x09\x19\x00\x00\x00\x00\x00\x00\xf0\x3f"
"""A metric with the value 1.0."""


def test_a_value_in_an_unknown_field_is_not_read() -> None:
    """An unknown field in a metric, its value or its instances is not interpreted, and the loss is reported."""
    for metric, unknown in (
        (b"\x08\x00\x28\x01", "field 5 of a metric"),
        (b"\x08\x00\x12\x03\x30\x80\x01", "field 6 of a value"),
        (b"\x08\x00\x1a\x05\x12\x03\x30\x80\x01", "field 6 of a value"),
    ):
        _check_unread(_report([metric], [b"inst_executed"]), f"not read, as rooflens does not know it: {unknown}")


def test_unknown_fields_beside_known_content_are_named_once() -> None:
    """An additional field in every message changes no value and gives one note for the whole report."""
    beside = KNOWN[:3] + b"\x0c" + KNOWN[4:] + b"\x30\x80\x01" + b"\x28\x01"
    instance = b"\x08\x01\x1a\x08\x12\x04\x28\x01\x30\x01\x18\x01"
    plain, odd = (
        read_bytes(_report([one, other], [b"a", b"inst_executed"]), "some", EVERYTHING)
        for one, other in ((KNOWN, b"\x08\x01\x1a\x04\x12\x02\x28\x01"), (beside, instance))
    )
    assert replace(odd.kernels[0], digest=plain.run.digest) == plain.kernels[0]
    assert _values(plain) == _values(odd) == {"a": 1.0}
    (note,) = odd.notes
    fields = ("field 3 of an instance", "field 5 of a metric", "field 6 of a value")
    assert note == f"not read, as rooflens does not know it: {', '.join(fields)}"
    assert odd.loss is None


def test_a_reader_can_be_asked_for(tmp_path: Path) -> None:
    """Without NVIDIA's module the report of what holds no code is the same, and says which reader read it."""
    file = tmp_path / "some.ncu-rep"
    file.write_bytes(REPORT)
    ours, without = (read_report(file, "some", ReadOptions(reader=reader)) for reader in ("auto", "direct"))
    assert ours.run.reader == without.run.reader == "direct"
    assert list(differences_of(ours, without)) == []


def test_large_files_are_read_through_a_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not loaded into memory as a whole gives the same report."""
    file = tmp_path / "some.ncu-rep"
    file.write_bytes(REPORT)
    whole = read_report(file, "some", EVERYTHING)
    monkeypatch.setattr(read, "_MOST_IN_MEMORY_BYTES", 100)
    monkeypatch.setattr(read, "_CHUNK_BYTES", 64)
    assert list(differences_of(read_report(file, "some", EVERYTHING), whole)) == []


def test_only_the_longest_kernels_have_their_code_by_line() -> None:
    """Of many kernels with instructions the twenty longest are listed; of equally long ones the first."""
    durations = [float(1000 + number % 30) for number in range(60)]
    table = {"inst_executed": BY_ADDRESS}
    kernels = [KernelSpec("kernel()", {"gpu__time_duration.sum": duration, **table}) for duration in durations]
    found = read_bytes(encode_report(ReportSpec(kernels)), "some")
    assert len(found.kernels) == 60
    longest = sorted(range(60), key=lambda number: (-durations[number], number))[:MOST_IN_TEXT]
    assert sorted(found.untold) == sorted(longest)


VALUES: list[dict[str, Any]] = [
    {},
    {"MetricValue": {}},
    *({"MetricValue": {"StringValue": text}} for text in (b"", b"\0", b"caf\xe9")),
    *({"MetricValue": {"DoubleValue": number}} for number in (0.0, -1.0, 1e300)),
    *({"MetricValue": {"Uint64Value": number}} for number in (0, 2**63)),
    {"MetricValue": {"FloatValue": 1.5}},
    {"MetricValue": {"Uint32Value": 7}},
]
TAILS = (
    b"\x20\x00",
    b"\x20\x01",
    b"\x20\x02",
    b"\x20\x7f",
    b"\x28\x01",
    b"\x12\x03\x30\x80\x01",
    b"\x12\x01\x00",
    b"\x12\x00",
)
"""Kinds, unknown fields, and values that are no values."""


def test_metrics_decoded_at_once_are_those_decoded_one_by_one() -> None:
    """Whatever metrics surround each other, no value goes to another name, and damage is never read as a value."""
    chance = random.Random(20261123)  # noqa: S311 - repeatable
    at_once_count = 0
    for _ in range(3000):
        metrics = [{"NameId": chance.randrange(50), **chance.choice(VALUES)} for _ in range(chance.randrange(9))]
        entries = [message("MetricResult")(**metric).SerializeToString() for metric in metrics]
        entries = [entry + (chance.choice(TAILS) if chance.random() < 0.1 else b"") for entry in entries]
        entries = [entry[:-1] if chance.random() < 0.01 else entry for entry in entries]
        if (found := protobuf._values_at_once(entries)) is None:
            continue
        at_once_count += 1
        reader = ResultReader(b"", Outline("", 0, [], [], (), synthetic=False, labels={}, unknown=frozenset()))
        one_by_one = reader._values_one_by_one(entries, 0, ResultSpan("kernel", 0, 0, 0))
        assert [list(part) for part in found] == [list(part) for part in one_by_one], entries
    assert at_once_count > 1000


def test_any_flipped_byte_is_an_input_error_or_harmless() -> None:
    """Damage gives an input error or a report, never another exception, whatever parts are requested."""
    for _, data in flipped_copies(REPORT, count=400, seed=20261122):
        answers = []
        for options in (EVERYTHING, ReadOptions(raw="values"), ReadOptions()):
            try:
                answers.append(str([kernel.status for kernel in read_bytes(data, "some", options).kernels]))
            except InputError as error:
                answers.append(str(error))
        assert answers[1] == answers[2]


def test_a_metric_whose_name_is_no_text_is_named_as_lost() -> None:
    """Names are ASCII: a value under a damaged name is reported as lost, and nothing else is affected."""
    data = encode_report(ReportSpec([KernelSpec("k()", {"gpu__time_duration.sum": 1e3, "launch__grid_size": 8})]))
    report = read_bytes(data.replace(b"launch__grid_size", b"launch__gr\xffd_size"), "some", EVERYTHING)
    (kernel,) = report.kernels
    assert (kernel.status, kernel.duration_ns) == ("partial", 1e3)
    assert "1 metric not read" in str(report.loss)
    assert "launch__gr\N{REPLACEMENT CHARACTER}d_size" in str(report.loss)
