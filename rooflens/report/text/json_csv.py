"""What `analyze --format json` and `csv` write; `contract.py` describes each key of the JSON."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from rooflens.model.records import LEVELS
from rooflens.report.text.contract import KERNEL, NUMBER, to_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rooflens.model.records import Analysis, AnalyzedReport

CSV_COLUMNS = (
    *("source", "index", "name", "gpu", "status", "duration_ns", "flop_total"),
    *(f"{name}_bytes" for name in LEVELS),
    *("dram_intensity_flop_per_byte", "flop_per_s"),
    *(f"{name}_share" for name in LEVELS),
    *("bound", "resource", "at_roof", "cause", "headroom", "confidence", "flags"),
)


def to_json(analyses: Iterable[Analysis], reports: Iterable[AnalyzedReport] = ()) -> str:
    """Write the analyses, and the programs of the reports, as the JSON contract has them, in the order given."""
    return json.dumps(to_document(analyses, reports), indent=2, ensure_ascii=False, allow_nan=False)


def json_lines(analyses: Iterable[Analysis], reports: Iterable[AnalyzedReport] = ()) -> Iterator[str]:
    """Write the same document for programs: without indentation, a line for each kernel, as they come."""
    head = json.dumps(to_document((), reports), ensure_ascii=False, allow_nan=False, separators=_DENSE)
    yield f"{head.removesuffix(']}')}\n"
    before = ""
    for analysis in analyses:
        line = json.dumps(KERNEL.write(analysis), ensure_ascii=False, allow_nan=False, separators=_DENSE)
        yield f"{before}{line}"
        before = ",\n"
    yield "\n]}\n"


_DENSE = (",", ":")


def to_csv(analyses: Iterable[Analysis]) -> str:
    """Write one line a kernel with the columns `CSV_COLUMNS`; missing values are empty."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, CSV_COLUMNS, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(_csv_row(analysis) for analysis in analyses)
    return stream.getvalue()


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
