"""Analyses as data: the JSON document with its schema, and CSV; nothing in them steers a terminal or is a formula.

What is written of a kernel is described in `rooflens.model.catalogue`. `rooflens/report/analysis.schema.json` is
`schema_text()`, held by a test.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rooflens.format import as_unicode, harmless
from rooflens.model.analyze import analyze
from rooflens.model.catalogue import (
    CHECKED,
    KERNEL,
    OPPORTUNITY,
    PROGRAM,
    PROGRAM_KERNEL,
    RANK,
    SCHEMA_VERSION,
    TRACE,
    WAITED_FOR,
    Schema,
    nullable,
    quantities,
)
from rooflens.model.failed import bug_reason, failed_kernel
from rooflens.model.ranking import opportunities, tiers
from rooflens.model.records import Analysis, AnalyzedReport, Outside
from rooflens.model.summary import summarize
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.ladder_data import LADDER
from rooflens.report.overview.headline import headline

if TYPE_CHECKING:
    from rooflens.model.predict.measured import Checked
    from rooflens.model.program.program import Program

_STEERING = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""What JSON need not escape, and a terminal or an editor obeys or hides: `json` escapes the rest."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_QUOTED = re.compile('[",\r\n]')


def to_document(
    analyses: Iterable[Analysis], reports: Sequence[AnalyzedReport] = (), expected: Sequence[Checked] | None = None
) -> dict[str, Any]:
    """Build the JSON document: units in names, shares as fractions, what was not measured null.

    Args:
        analyses: The kernels.
        reports: The reports: their programs are described where they were also run without the profiler, and their
            versions.
        expected: What was predicted of them, with its measurement; None if nobody predicted anything.
    """
    known = tuple(analyses)
    return _document(known, reports, expected) | {"kernels": [KERNEL.json(analysis) for analysis in known]}


def _document(
    analyses: Sequence[Analysis], reports: Sequence[AnalyzedReport], expected: Sequence[Checked] | None
) -> dict[str, Any]:
    """Build the document without its kernels, which come last."""
    content = build_content(reports, "", default_thresholds()) if reports else None
    kernels = content.kernels if content else [kernel for kernel in summarize(analyses) if not kernel.is_failed]
    rows = opportunities(kernels)
    return {
        "schema_version": SCHEMA_VERSION,
        "headline": headline(content).text if content else None,
        "programs": [PROGRAM.json(report) for report in reports if report.unprofiled is not None],
        "ladders": [LADDER.json(one) for one in content.ladders] if content else [],
        "ranking": [OPPORTUNITY.json(row) for row in zip(rows, tiers(rows), strict=True)],
        **({} if expected is None else {"expectations": [CHECKED.json(one) for one in expected]}),
    }


def schema_text() -> str:
    """Write the JSON Schema of the document as it ships."""
    schema: Schema = {
        "type": "object",
        "properties": {
            "schema_version": {
                "const": SCHEMA_VERSION,
                "description": "raised when a field is removed or changes its meaning; new ones do not raise it",
            },
            "headline": {
                "type": ["string", "null"],
                "description": "the answer in one sentence, as every page and table begins; null without a report",
            },
            "programs": {
                "type": "array",
                "items": PROGRAM.schema,
                "description": "programs that were also run without the profiler",
            },
            "ladders": {
                "type": "array",
                "items": LADDER.schema,
                "description": "programs of which the reports hold several versions, and kernels that do the same work",
            },
            "ranking": {
                "type": "array",
                "items": OPPORTUNITY.schema,
                "description": "what to do, in order: a row for each kernel, and one for kernels that one move is for",
            },
            "expectations": {
                "type": "array",
                "items": CHECKED.schema,
                "description": "what was predicted, with its measurement: only where a prediction was asked for",
            },
            "kernels": {
                "type": "array",
                "items": KERNEL.schema,
                "description": "one entry a profiled kernel, in the order of the reports",
            },
        },
        "required": ["schema_version", "headline", "programs", "ladders", "ranking", "kernels"],
        "additionalProperties": False,
    }
    return written_schema("rooflens analyze --format json", schema)


def written_schema(title: str, schema: Schema) -> str:
    """Write a JSON Schema as it ships, under its title."""
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def traces_document(programs: Sequence[Program]) -> dict[str, Any]:
    """Build the JSON document of traces without a report: of one its keys, of several one object each."""
    written = [TRACE.json(program) for program in programs]
    if len(written) == 1:
        return {"schema_version": SCHEMA_VERSION, **written[0]}
    from rooflens.model.program.ranks import joined  # noqa: PLC0415 - only of several traces

    whole = joined(programs)
    return {
        "schema_version": SCHEMA_VERSION,
        "ranks": [RANK.json(one) for one in whole.ranks],
        "waited_for": nullable(WAITED_FOR).json(whole.waited_for),
        "traces": written,
    }


def traces_schema_text() -> str:
    """Write the JSON Schema of that document as it ships."""
    version = {"const": SCHEMA_VERSION, "description": "raised when a field is removed or changes its meaning"}
    one: Schema = dict(TRACE.schema)
    one["properties"] = {"schema_version": version, **one["properties"]}
    one["required"] = ["schema_version", *one["required"]]
    several = {
        "type": "object",
        "properties": {
            "schema_version": version,
            "ranks": {
                "type": "array",
                "items": RANK.schema,
                "description": "empty where no trace tells its own",
            },
            "waited_for": nullable(WAITED_FOR).schema,
            "traces": {"type": "array", "items": TRACE.schema},
        },
        "required": ["schema_version", "ranks", "waited_for", "traces"],
        "additionalProperties": False,
    }
    return written_schema("rooflens analyze TRACE --format json", {"oneOf": [one, several]})


def traces_csv(programs: Sequence[Program], *, raw_cells: bool = False) -> str:
    """Write one line for each kernel of traces, with the trace before it."""
    keys = [key for key in PROGRAM_KERNEL.keys if key.shape.cell is not None]
    rows = (
        {"source": program.source, **{key.name: key.shape.json(key.take(kernel)) for key in keys}}
        for program in programs
        for kernel in program.kernels
    )
    return csv_text(["source", *(key.name for key in keys)], rows, raw_cells=raw_cells)


def to_json(
    analyses: Iterable[Analysis], reports: Sequence[AnalyzedReport] = (), expected: Sequence[Checked] | None = None
) -> str:
    """Write the document for people, in the order given."""
    return json_text(to_document(analyses, reports, expected))


def json_lines(
    analyses: Iterable[Analysis], reports: Sequence[AnalyzedReport] = (), expected: Sequence[Checked] | None = None
) -> Iterator[str]:
    """Write the same document for programs: without indentation, a line for each kernel, as they come."""
    known = tuple(analyses)
    head = json_text(_document(known, reports, expected) | {"kernels": []}, dense=True)
    yield f"{head.removesuffix(']}')}\n"
    before = ""
    for analysis in known:
        yield f"{before}{_kernel_line(analysis)}"
        before = ",\n"
    yield "\n]}\n"


def _kernel_line(analysis: Analysis) -> str:
    """Write a kernel; what was printed before it cannot be taken back, so a bug that it meets makes it a failed one."""
    try:
        return json_text(KERNEL.json(analysis), dense=True)
    except Exception as error:  # noqa: BLE001 - a bug that one kernel meets must not cost the others
        failed = failed_kernel(analysis.kernel, bug_reason(error))
        return json_text(KERNEL.json(analyze(failed, outside=Outside(key=analysis.key))), dense=True)


def to_csv(analyses: Iterable[Analysis], *, raw_cells: bool = False) -> str:
    """Write one line a kernel with its quantities by their flat names; missing values are empty."""
    columns = [(quantity.name, quantity.value, quantity.key.shape.write) for quantity in quantities()]
    rows = (
        {name: value if write is None else write(value) for name, take, write in columns for value in (take(analysis),)}
        for analysis in analyses
    )
    return csv_text([name for name, _, _ in columns], rows, raw_cells=raw_cells)


def json_text(document: Any, *, dense: bool = False) -> str:
    """Write JSON with letters of any script as they are, invisible characters as escapes, what is no number as null.

    Args:
        document: Of lists, dicts, texts and numbers.
        dense: Write it for programs: on one line, without spaces.
    """
    try:
        data = msgspec.json.encode(document)
    except UnicodeEncodeError:
        data = msgspec.json.encode(_in_unicode(document))
    text = (data if dense else msgspec.json.format(data, indent=2)).decode()
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _in_unicode(item: Any) -> Any:
    """Return a document whose texts are all Unicode: names of files may hold any bytes."""
    if isinstance(item, str):
        return as_unicode(item)
    if isinstance(item, Mapping):
        return {as_unicode(key): _in_unicode(value) for key, value in item.items()}
    return [_in_unicode(one) for one in item] if isinstance(item, (list, tuple)) else item


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, raw_cells: bool = False) -> str:
    """Write CSV with a line of headings; what is None is empty, and further keys of a row are left out.

    A text that a spreadsheet would run gets an apostrophe before it, and its control characters become `?`; the CSV
    button of the page does the same.

    Args:
        columns: Keys of the rows, and headings.
        rows: Texts, numbers and lists of them by column; the entries of a list are separated by spaces.
        raw_cells: Keep texts as they are.
    """
    lines = [columns, *([row.get(column) for column in columns] for row in rows)]
    return "".join(f"{','.join(_csv_cell(value, raw=raw_cells) for value in line)}\n" for line in lines)


def _csv_cell(value: Any, *, raw: bool) -> str:
    if value is None:
        return ""
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    if isinstance(value, (str, list)) and not raw:
        text = harmless(f"'{text}" if text.startswith(_FORMULA) else text)
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if _QUOTED.search(text) else text
