"""Inputs of any size for each reader, so that twice the input can be seen to cost twice the steps, not four times."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from support.cubin_writer import END, SET_ADDRESS, STEP, cubin, line_table, report_with, sampled, source_of
from support.encoded_code import encoded, jump
from support.ncu_rep_writer import Instances, KernelSpec, MetricValue, NvtxRange, ReportSpec, Rule, encode_report
from support.printing import printed
from support.steps import steps_of
from support.timelines import Launched, write_export
from support.traces import Event, host, kernel, write_trace
from support.traces import launch as launched_at

from rooflens.analyzing import read_timeline
from rooflens.ingest.reports.read import ReadOptions, read_bytes
from rooflens.ingest.timelines import export

sys.path.append(str(Path(__file__).parents[1] / "ingest" / "exports"))

from texts import LONG, RULES, SHARE, TIME, launch, long_text, metric, text, wide_text


class Growing(NamedTuple):
    """An input of any size.

    Attributes:
        reader: What reads it.
        what: What it has more of, the larger it is.
        write: Writes one, given how many.
        suffix: How its file is named, for those that are read by name; empty for the rest.
        least: How many are few.
    """

    reader: str
    what: str
    write: Callable[[int], bytes]
    suffix: str = ""
    least: int = 100


_GPU = "NVIDIA A10"
"""Exports do not say where they were recorded."""


def steps_to_read(growing: Growing, count: int) -> int:
    """Return how many steps of Python, and of SQLite, it takes to read an input of some size."""
    data = growing.write(count)
    each, export._SQL_STEPS = export._SQL_STEPS, 1  # SQLite calls back so often: each of its steps is counted
    try:
        with TemporaryDirectory() as folder:
            file = Path(folder) / f"grown{growing.suffix}"
            file.write_bytes(data)

            if growing.suffix:
                return steps_of(lambda: read_timeline(file))
            return steps_of(lambda: read_bytes(data, "grown", ReadOptions(gpu=_GPU)))
    finally:
        export._SQL_STEPS = each


def growth(growing: Growing) -> tuple[int, int, float]:
    """Return the steps for twice and four times the least size, and by what the second adds more than the first.

    What is added is twice as much for a reader in linear time, and four times for one in quadratic time; what a reader
    does once does not count.
    """
    steps_to_read(growing, growing.least // 8)  # imports, patterns that are compiled
    few, some, many = (steps_to_read(growing, growing.least * times) for times in (1, 2, 4))
    return some, many, (many - some) / max(1, some - few)


def _report(*kernels: KernelSpec, in_a_block: int = 1000) -> bytes:
    return encode_report(ReportSpec(kernels, kernels_per_block=in_a_block))


_TIMED: dict[str, MetricValue] = {
    "gpu__time_duration.sum": 1000.0,
    "dram__bytes_read.sum": 1e6,
    "launch__grid_size": 8,
    "launch__block_size": 128,
}


_OPCODES = "sass__inst_executed_per_opcode_with_modifier_all"


def _kernels(count: int, *, in_a_block: int = 1000) -> bytes:
    return _report(*(KernelSpec(f"kernel_{place}", _TIMED) for place in range(count)), in_a_block=in_a_block)


def _instances(count: int) -> bytes:
    opcodes: dict[str | int, float | str] = {f"OP{place}": 1.0 for place in range(count)}
    return _report(KernelSpec("kernel", {**_TIMED, _OPCODES: Instances(opcodes, count)}))


def _ranges(count: int) -> bytes:
    ranges = [NvtxRange(f"range {place} of {count}", last_call=place) for place in range(count)]
    return _report(KernelSpec("kernel", _TIMED, ranges=ranges))


def _rules(count: int) -> bytes:
    # Texts are remembered: those of one size must not be known from another.
    rules = [Rule(f"rule {place} of {count}", "Occupancy", "title", "text") for place in range(count)]
    return _report(KernelSpec("kernel", _TIMED, rules=rules))


def _rows(count: int) -> bytes:
    return report_with(source_of(cubin(line_table(SET_ADDRESS + STEP * count + END))))


def _functions(count: int) -> bytes:
    names = [b"kernel_%d" % place for place in range(count)]
    binary = cubin(line_table((SET_ADDRESS + STEP + END) * count), names)
    by_address = {0x1000 + 64 * place: name for place, name in enumerate(names)}
    return report_with(source_of(binary, by_address), kernels=[sampled(instruction_count=4 * count)])


def _modules(count: int) -> bytes:
    binary = cubin(line_table(SET_ADDRESS + STEP * 4 + END))
    sources = [source_of(binary, reference=1 + place) for place in range(count)]
    kernels = [sampled(f"kernel_{place}", reference=1 + place) for place in range(count)]
    return report_with(*sources, kernels=kernels)


def _instructions(count: int) -> bytes:
    """Write a report of a kernel of small loops, with samples at each instruction."""
    loop = encoded(0x981, d=2, a=8, written=0, more=5 << 72) + encoded(0x223, d=3, a=2, b=5, c=3, waits=1)
    code = (loop * 10 + jump(20, guard=0)) * (count // 21) + encoded(0x94D, 0, 0, 0, 0, more=7 << 87)
    binary = cubin(line_table(SET_ADDRESS + STEP * (count // 2) + END), code=code)
    return report_with(source_of(binary), kernels=[sampled(instruction_count=len(code) // 16)])


def _long(count: int) -> bytes:
    return long_text(metric(TIME, "us", "28.13"), metric(SHARE, "%", "61.84"), launches=count).encode()


def _long_metrics(count: int) -> bytes:
    return long_text(*(metric(f"sm__made_up_{place}.sum", "inst", "5") for place in range(count))).encode()


def _wide(count: int) -> bytes:
    return wide_text({TIME: ("usecond", "28.1"), SHARE: ("%", "61.8")}, launches=count).encode()


def _wide_columns(count: int) -> bytes:
    return wide_text({f"sm__made_up_{place}.sum": ("inst", "5") for place in range(count)}).encode()


_PRINTED = (
    metric("Elapsed Cycles", "cycle", "102,095", "GPU Speed Of Light Throughput"),
    metric("DRAM Throughput", "%", "92.20", "GPU Speed Of Light Throughput"),
    metric("Duration", "usecond", "72.64", "GPU Speed Of Light Throughput"),
)


def _printed(count: int) -> bytes:
    return printed(text((*LONG, *RULES), [{**launch(at), **one} for at in range(count) for one in _PRINTED])).encode()


def _printed_metrics(count: int) -> bytes:
    rows = [metric(f"Made Up {at}", "inst", "5", "GPU Speed Of Light Throughput") for at in range(count)]
    return printed(text((*LONG, *RULES), [{**launch(), **one} for one in (*_PRINTED, *rows)])).encode()


def _printed_rules(count: int) -> bytes:
    rule = {"Section Name": "SchedulerStats", "Rule Name": "r", "Rule Type": "OPT", "Rule Description": "Words " * 40}
    return printed(text((*LONG, *RULES), [{**launch(), **one} for one in (*_PRINTED, *[rule] * count)])).encode()


def _amid_a_log(count: int) -> bytes:
    return b"loss 1.5 at step 7, and no table\n" * count + _printed(2)


def _counters(count: int) -> bytes:
    return json.dumps({f"kernel_{at}": {"dram__bytes_read.sum": 6e8, TIME: 1e3} for at in range(count)}).encode()


def _counters_of_one(count: int) -> bytes:
    return json.dumps({"kernel": {f"sm__made_up_{at}.sum": 5 for at in range(count)}}).encode()


def _counters_in_lists(count: int) -> bytes:
    return json.dumps([[{"kernel": f"k{at}", "metrics": {TIME: 1e3}}] for at in range(count)]).encode()


def _trace(events: Sequence[Event]) -> bytes:
    with TemporaryDirectory() as folder:
        return write_trace(Path(folder) / "t.json", events).read_bytes()


def _launches(count: int) -> list[Event]:
    launches = [launched_at(10.0 * at, at) for at in range(count)]
    return [*launches, *(kernel(f"k{at % 7}", 10.0 * at + 5, 4.0, correlation=at) for at in range(count))]


def _trace_of_ranges(count: int, *, nested: bool) -> bytes:
    end = 10.0 * count
    spans = [(float(at), end - 2 * at) if nested else (10.0 * at, 8.0) for at in range(count)]
    ranges = [host("user_annotation", f"range {at}", start, time) for at, (start, time) in enumerate(spans)]
    return _trace([*ranges, *_launches(count)])


def _export(launches: Sequence[Launched], ranges: Sequence[tuple[str, int, int, int, int]] = ()) -> bytes:
    with TemporaryDirectory() as folder:
        return write_export(Path(folder) / "e.sqlite", launches, ranges=ranges).read_bytes()


def _launched(count: int, *, names: int = 7) -> list[Launched]:
    return [Launched(f"kernel_{at % names}", 1000 * at + 10, 1000 * at + 400) for at in range(1, count + 1)]


def _export_of_ranges(count: int, *, nested: bool) -> bytes:
    end = 1000 * count + 1000
    spans = [(at, end - at) if nested else (1000 * at, 1000 * at + 900) for at in range(count)]
    return _export(_launched(count), [(f"range {at}", *span, 1, 59) for at, span in enumerate(spans)])


GROWING = (
    Growing("container of a report", "kernels", _kernels, least=40),
    Growing("container of a report", "blocks", lambda count: _kernels(count, in_a_block=1), least=40),
    Growing("container of a report", "opcodes of a kernel", _instances),
    Growing("container of a report", "ranges around a kernel", _ranges),
    Growing("container of a report", "rules of a kernel", _rules, least=30),
    Growing("cubin", "rows of a line table", _rows),
    Growing("cubin", "functions", _functions, least=30),
    Growing("cubin", "modules", _modules, least=30),
    Growing("cubin", "instructions in loops, sampled", _instructions, least=420),
    Growing("CSV of ncu", "kernels, a metric a row", _long, least=40),
    Growing("CSV of ncu", "metrics of a kernel, one a row", _long_metrics),
    Growing("CSV of ncu", "kernels, one a row", _wide, least=40),
    Growing("CSV of ncu", "metrics, one a column", _wide_columns),
    Growing("printed text", "kernels", _printed, least=60),
    Growing("printed text", "metrics of a kernel", _printed_metrics),
    Growing("printed text", "rules of a kernel", _printed_rules, least=30),
    Growing("printed text", "lines of a log around it", _amid_a_log),
    Growing("JSON of counters", "kernels", _counters, least=40),
    Growing("JSON of counters", "metrics of a kernel", _counters_of_one),
    Growing("JSON of counters", "kernels in lists", _counters_in_lists, least=40),
    Growing("trace of PyTorch", "kernels", lambda count: _trace(_launches(count)), ".json", 30),
    Growing("trace of PyTorch", "ranges in a row", lambda n: _trace_of_ranges(n, nested=False), ".json", 30),
    Growing("trace of PyTorch", "ranges within one another", lambda n: _trace_of_ranges(n, nested=True), ".json", 130),
    Growing("export of nsys", "kernels", lambda count: _export(_launched(count)), ".sqlite", 30),
    Growing("export of nsys", "names", lambda count: _export(_launched(count, names=count)), ".sqlite", 30),
    Growing("export of nsys", "ranges in a row", lambda n: _export_of_ranges(n, nested=False), ".sqlite", 30),
    Growing("export of nsys", "ranges within one another", lambda n: _export_of_ranges(n, nested=True), ".sqlite", 130),
)
