"""What `analyze --format json` and `csv` write; `contract.py` describes each key of the JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflens.model.analyze import analyze
from rooflens.model.failed import bug_reason, failed_kernel
from rooflens.model.records import LEVELS, Outside
from rooflens.report.text.contract import KERNEL, NUMBER, to_document
from rooflens.report.text.data import csv_text, json_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rooflens.model.records import Analysis, AnalyzedReport

CSV_COLUMNS = (
    *("source", "index", "name", "gpu", "status", "duration_ns", "flop_total"),
    *(f"{name}_bytes" for name in LEVELS),
    *("dram_intensity_flop_per_byte", "flop_per_s"),
    *(f"{name}_share" for name in LEVELS),
    *("bound", "resource", "at_roof", "cause", "headroom", "confidence", "flags", "key"),
)


def to_json(analyses: Iterable[Analysis], reports: Iterable[AnalyzedReport] = ()) -> str:
    """Write the analyses, and the programs of the reports, as the JSON contract has them, in the order given."""
    return json_text(to_document(analyses, reports))


def json_lines(analyses: Iterable[Analysis], reports: Iterable[AnalyzedReport] = ()) -> Iterator[str]:
    """Write the same document for programs: without indentation, a line for each kernel, as they come."""
    return json_parts(json_rows(analyses), reports)


def json_rows(analyses: Iterable[Analysis]) -> Iterator[str]:
    """Write the kernels of that document, each on its line, without what stands between them."""
    return map(_line, analyses)


def json_parts(rows: Iterable[str], reports: Iterable[AnalyzedReport]) -> Iterator[str]:
    """Put that document together of rows of kernels, which may be several lines each, and the reports' programs."""
    head = json_text(to_document((), reports), dense=True)
    yield f"{head.removesuffix(']}')}\n"
    before = ""
    for row in rows:
        yield f"{before}{row}"
        before = ",\n"
    yield "\n]}\n"


def _line(analysis: Analysis) -> str:
    """Write a kernel; what was printed before it cannot be taken back, so a bug that it meets makes it a failed one."""
    try:
        return json_text(KERNEL.write(analysis), dense=True)
    except Exception as error:  # noqa: BLE001 - a bug that one kernel meets must not cost the others
        failed = failed_kernel(analysis.kernel, bug_reason(error))
        return json_text(KERNEL.write(analyze(failed, outside=Outside(key=analysis.key))), dense=True)


def to_csv(analyses: Iterable[Analysis], *, raw_cells: bool = False) -> str:
    """Write one line a kernel with the columns `CSV_COLUMNS`; missing values are empty."""
    return csv_text(CSV_COLUMNS, map(_csv_row, analyses), raw_cells=raw_cells)


def _csv_row(analysis: Analysis) -> dict[str, Any]:
    """Flatten the keys of the JSON: those by level get the level's name before them."""
    row = KERNEL.write(analysis)
    return {
        **row,
        **row["verdict"],
        **{f"{name}_bytes": amount for name, amount in row["bytes"].items()},
        **{f"{name}_share": level["share"] for name, level in row["levels"].items()},
        "dram_intensity_flop_per_byte": row["intensity"]["dram"],
        "flop_per_s": NUMBER.write(analysis.flop_per_s),
        "flags": " ".join(row["flags"]),
    }
