from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING

from jsonschema import Draft202012Validator

from rooflens.analyzing import analyze_paths
from rooflens.report.text.contract import schema_text, to_document, to_schema

if TYPE_CHECKING:
    from pathlib import Path

SHIPPED = files("rooflens.report").joinpath("analysis.schema.json")


def test_the_shipped_schema_is_that_of_the_table() -> None:
    """`schema_text()` writes the file anew: keys, types and meanings stand in one place."""
    assert SHIPPED.read_text(encoding="utf-8") == schema_text()


def test_documents_keep_to_the_schema(fixtures: Path) -> None:
    """Stored reports are valid; a key that is missing or unknown is not."""
    (report,) = analyze_paths([fixtures / "synthetic" / "attention.synthetic.ncu-rep"]).reports
    document = json.loads(json.dumps(to_document(report.analyses)))
    validator = Draft202012Validator(to_schema())
    validator.validate(document)
    document["kernels"][0].pop("flags")
    document["kernels"][1]["more"] = 1
    assert {error.validator for error in validator.iter_errors(document)} == {"required", "additionalProperties"}
