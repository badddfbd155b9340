"""Read what `key_averages().table()` of the PyTorch profiler prints: operators, calls, kernels and copies in one table.

Its columns are those of `_build_table` in torch/autograd/profiler_util.py, of PyTorch 1.6 to 2.x. A kernel's time
stands twice in it: in its own row, which no host ran, and as the device's own time of the operator that launched it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rooflens.errors import InputError
from rooflens.format import bounded_name, count, percent
from rooflens.ingest.timelines.printed import NS_OF_UNIT, PrintedTable, nanoseconds, whole
from rooflens.model.program.timeline import Operands
from rooflens.model.program.totals import KernelTotal, Total, TotalOf, Totals

KIND = "PyTorch profiler, printed"

TRACE_HINT = '`prof.export_chrome_trace("step.json.gz")` has them'

_CALLS = ("# of calls", "number of calls")
_SELF_CPU = ("self cpu", "self cpu total")
_SELF = re.compile(r"self (?!cpu\b)(\S{1,40})")
_TIME_TEXT = re.compile(r"([\d.,]+)\s*(ns|us|\u00b5s|\u03bcs|ms|s)")
_TOTAL = re.compile(r"Self (?!CPU )\S{1,40} time total:\s*([\d.,]+\s*\w{1,2})")
_COPY = re.compile(r"Mem(?:cpy|set)\b")
_RANGE = re.compile(
    r"ProfilerStep[#*]|Optimizer\.|nccl:|## |Torch-Compiled Region|autograd::engine::|DataParallel|DistributedData"
)
_OPERATOR = re.compile(r"\w+::")
_CALL = re.compile(
    r"cu(?:da)?[A-Z]\w+|hip[A-Z]\w+|nccl[A-Z]\w+|Activity Buffer Request|Lazy Function Loading|Runtime Triggered"
)
_CUT_MARKS = ("...", "..")
_MOST_DIMS = 64
_LONGEST_SHAPES = 1 << 16
_SMALLEST_TYPE = "c10::Half"
"""Printed sizes have no types: 16 bits an element are the fewest of usual ones, so that a floor stays one."""

_ROUNDING = 1.01
"""Rows are printed with four digits or more: together they do not exceed the total by more than this."""


class _AverageRow(NamedTuple):
    """A row with time on the device or on the host."""

    name: str
    calls: int
    host_ns: float
    device_ns: float
    shapes: str
    code: str

    @property
    def is_of_host(self) -> bool:
        """Whether the host ran it: an operator, a call or a range; else the device did."""
        return self.host_ns > 0


def is_averages(columns: Sequence[str]) -> bool:
    """Return whether headings are those of the profiler's table."""
    return "name" in columns and any(one in columns for one in _CALLS) and any(one in columns for one in _SELF_CPU)


def read_averages(tables: Iterable[PrintedTable], source: str) -> Totals:
    """Make one summary of the tables that PyTorch's profiler printed; no kernel counts twice.

    Raises:
        InputError: No table has times of a GPU.
    """
    first, *others = tables
    device = _device_of(first)
    if device is None:
        later = next((one for one in others if _device_of(one) is not None), None)
        if later is None:
            raise InputError(
                f"`{source}` holds no time of a GPU: its table has no column such as `Self CUDA`",
                "profile with `activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`, and print the table again",
            )
        first, others, device = later, [], _device_of(later)
    rows, left_out = _average_rows(first)
    notes: list[str] = []
    for other in others:
        if _total_of(other) == _total_of(first) and _device_of(other) is not None:
            more, lost = _average_rows(other)
            rows, left_out = list(dict.fromkeys((*rows, *more))), left_out + lost
        else:
            notes.append("several tables of different runs: the first with times of a GPU is read")
    kernels, totals = _parted(rows)
    if not kernels:
        raise InputError(
            f"`{source}` holds no time of a GPU: no row of its table has any",
            "profile with ProfilerActivity.CUDA, and print more rows: `table(row_limit=-1)`",
        )
    said = _what_is_missing(kernels, totals, _total_of(first), left_out)
    return Totals(source, KIND, tuple(kernels), tuple(totals), (*said, *dict.fromkeys(notes)), "trace")


def _what_is_missing(
    kernels: Sequence[KernelTotal], totals: Sequence[Total], whole_ns: float | None, left_out: int
) -> Iterator[str]:
    """Say what the table does not tell, a sentence each, and how to have it."""
    yield f"totals of `key_averages()`: when kernels ran, their gaps and streams are not in it; {TRACE_HINT}"
    listed_ns = sum(one.time_ns for one in kernels) + sum(one.time_ns for one in totals if one.of == "copy")
    if whole_ns and listed_ns < whole_ns / _ROUNDING:
        rest = percent(1 - listed_ns / whole_ns)
        yield f"{rest} of the GPU's time is in no row of the table: `table(row_limit=-1)` prints them all"
    elif whole_ns and listed_ns > whole_ns * _ROUNDING:
        yield "the rows have more time than the table's own total: some are ranges around others"
    if any(one.operands for one in kernels):
        yield "printed sizes have no types: floors are those of 16 bits an element, about half of those of fp32"
    elif any(one.operator for one in kernels):
        yield "no sizes of operators, so no floors: `key_averages(group_by_input_shape=True)` prints them"
    if any(one.operator and one.name == one.operator for one in kernels):
        yield "rows are operators with all kernels that they launch themselves; their launches are calls"
    if any(name.endswith(_CUT_MARKS) for name in (*(one.name for one in kernels), *(one.name for one in totals))):
        yield "long names are cut: `table(max_name_column_width=None)` prints them whole"
    if left_out:
        yield f"left out {count(left_out, 'line')} that could not be read: cut or broken"


def _device_of(table: PrintedTable) -> int | None:
    """Return the position of the device's own time; None if the table has none."""
    for at, heading in enumerate(table.columns):
        found = _SELF.fullmatch(heading)
        if found and f"{heading} %" in table.columns:
            return at
    return None


def _total_of(table: PrintedTable) -> float | None:
    """Return the device's time in all rows, which stands below the table; None if that was not copied."""
    for line in (*table.after, *(row[0] for row in table.rows[-3:])):
        if found := _TOTAL.match(line.strip()):
            return _parsed_time_ns(found[1])
    return None


def _average_rows(table: PrintedTable) -> tuple[list[_AverageRow], int]:
    device, host, calls = _device_of(table), table.place(*_SELF_CPU), table.place(*_CALLS)
    shapes, code, name = table.place("input shapes"), table.place("source location"), table.columns.index("name")
    rows, left_out = [], table.stray_count
    for cells in table.rows:
        if not cells[name]:
            continue  # further lines of a stack
        of_device = _parsed_time_ns(cells[device]) if device is not None else 0.0
        of_host = _parsed_time_ns(cells[host]) if host is not None else None
        number = whole(cells[calls]) if calls is not None else None
        if of_device is None or of_host is None or not number:
            left_out += not cells[name].startswith("Self ")
            continue
        rows.append(
            _AverageRow(
                bounded_name(cells[name]),
                number,
                of_host,
                of_device,
                cells[shapes] if shapes is not None else "",
                cells[code] if code is not None else "",
            )
        )
    return rows, left_out


def _parsed_time_ns(text: str) -> float | None:
    found = _TIME_TEXT.fullmatch(text.strip()[:40])
    return nanoseconds(found[1], NS_OF_UNIT[found[2]]) if found else None


def _parted(rows: Sequence[_AverageRow]) -> tuple[list[KernelTotal], list[Total]]:
    """Part the rows so that each nanosecond of the device counts once.

    Kernels and operators are two views of the same time. An operator with the time and the calls of exactly one kernel
    launched it. Of the rest, the view that holds more counts, and the other one is told beside it.
    """
    of_host = {one.name for one in rows if one.is_of_host}
    kernels, totals, operators = [], [], []
    for one in rows:
        if one.is_of_host:
            if one.device_ns > 0 and not _CALL.match(one.name):
                operators.append(one)
            elif kind := _kind_on_host(one.name):
                totals.append(Total(kind, one.name, one.calls, round(one.host_ns)))
        elif _COPY.match(one.name):
            totals.append(Total("copy", one.name, one.calls, round(one.device_ns)))
        elif one.device_ns > 0 and one.name not in of_host and not _RANGE.match(one.name):
            kernels.append(one)
    launched = _pairs(kernels, operators)
    if sum(one.device_ns for one in operators) > sum(one.device_ns for one in kernels) or (
        any(_operands(one.shapes) for one in operators)
        and sum(one.device_ns for one in operators) * _ROUNDING >= sum(one.device_ns for one in kernels)
    ):
        own = {id(operator): kernel for kernel, operator in launched}
        found = [_of_operator(one, own.get(id(one))) for one in operators]
        paired = {id(kernel) for kernel, _ in launched}
        rest: list[tuple[TotalOf, _AverageRow]] = [("kernel", one) for one in kernels if id(one) not in paired]
    else:
        own = {id(kernel): operator for kernel, operator in launched}
        found = [_of_kernel(one, own.get(id(one))) for one in kernels]
        paired = {id(operator) for _, operator in launched}
        rest = [("operator", one) for one in operators if id(one) not in paired]
    return found, [*totals, *(Total(of, one.name, one.calls, round(one.device_ns)) for of, one in rest)]


def _kind_on_host(name: str) -> TotalOf | None:
    if _CALL.match(name):
        return "call"
    return None if _OPERATOR.match(name) else "range"


def _pairs(kernels: Sequence[_AverageRow], operators: Sequence[_AverageRow]) -> list[tuple[_AverageRow, _AverageRow]]:
    """Pair each kernel with the operator of the same time and number of calls, where both are the only ones."""
    alike: defaultdict[tuple[float, int], list[_AverageRow]] = defaultdict(list)
    for one in operators:
        alike[one.device_ns, one.calls].append(one)
    times = Counter((one.device_ns, one.calls) for one in kernels)
    return [
        (one, own[0])
        for one in kernels
        if times[one.device_ns, one.calls] == 1 and len(own := alike.get((one.device_ns, one.calls), [])) == 1
    ]


def _of_kernel(row: _AverageRow, operator: _AverageRow | None) -> KernelTotal:
    return KernelTotal(
        row.name,
        row.calls,
        round(row.device_ns),
        round(row.device_ns / row.calls),
        operator=operator.name if operator else None,
        operands=_operands(operator.shapes) if operator else None,
        calls=operator.calls if operator else None,
        code=(operator.code or None) if operator else None,
    )


def _of_operator(row: _AverageRow, kernel: _AverageRow | None) -> KernelTotal:
    return KernelTotal(
        kernel.name if kernel else row.name,
        row.calls,
        round(row.device_ns),
        round(row.device_ns / row.calls),
        operator=row.name,
        operands=_operands(row.shapes),
        calls=row.calls,
        code=row.code or None,
    )


def _operands(shapes: str) -> Operands | None:
    """Read printed sizes, as `[[128, 64], [64, 32], []]`; None if they are cut, or are none.

    What has no size may be a number or nothing; a list of tensors is taken for neither.
    """
    if not shapes.startswith("[") or not shapes.endswith("]") or len(shapes) > _LONGEST_SHAPES:
        return None
    try:
        found = ast.literal_eval(shapes)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    if not isinstance(found, list) or not any(found):
        return None
    dims = tuple(_dims(one) for one in found[:_MOST_DIMS])
    return Operands(dims, tuple(_SMALLEST_TYPE if one else "Scalar" for one in dims))


def _dims(shape: object) -> tuple[int, ...]:
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        return ()
    return tuple(shape)
