from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path

from jsonschema import Draft202012Validator
from support.snapshots import SWITCH

from rooflens.analyzing import analyze_paths
from rooflens.model.about import everything
from rooflens.model.compare.pairing import checked, pair_sides
from rooflens.model.predict.forecast import swept
from rooflens.model.predict.operations import the_operation
from rooflens.model.roofline import datasheets
from rooflens.model.roofline.datasheets import the_datasheet
from rooflens.report.comparison import data as comparison
from rooflens.report.data import json_lines, schema_text, to_document, to_json
from rooflens.report.forecast import data as forecast

SCHEMAS = {
    "report/analysis.schema.json": schema_text,
    "report/comparison.schema.json": comparison.schema_text,
    "report/forecast.schema.json": forecast.schema_text,
    "gpus/schema.json": datasheets.schema_text,
}


def test_the_shipped_schemas_are_those_of_the_tables() -> None:
    """Keys, types and meanings are defined in one place; ROOFLENS_REWRITE=1 rewrites the files."""
    for name, text in SCHEMAS.items():
        shipped = files("rooflens").joinpath(name)
        if os.environ.get(SWITCH) == "1":
            Path(str(shipped)).write_text(text(), encoding="utf-8")
        assert shipped.read_text(encoding="utf-8") == text()


def test_forecasts_keep_to_their_schema() -> None:
    """One prediction and several are valid; a document with a missing key is not."""
    datasheet = the_datasheet("h100-sxm")
    validator = Draft202012Validator(json.loads(forecast.schema_text()))
    for sizes in ("4096", "128:4096:x2"):
        rows = [swept(the_operation("gemm"), {"m": sizes, "n": "m", "k": "m"}, "bf16", datasheet)]
        document = json.loads(forecast.to_json(rows))
        validator.validate(document)
    document["predictions"][0].pop("flop")
    assert not validator.is_valid(document)


def test_comparisons_keep_to_their_schema(fixtures: Path) -> None:
    """A comparison of stored reports is valid; a document with a missing key is not."""
    files = [fixtures / "published" / f"GPU_workshop__MW_{name}.ncu-rep" for name in ("Baseline", "DivToMult")]
    base, head = analyze_paths(files).reports
    ladders = checked(pair_sides(([base], [head]), ("before", "after"))[0], anyway=True, hint="")
    document = json.loads(comparison.to_json(ladders))
    validator = Draft202012Validator(json.loads(comparison.schema_text()))
    validator.validate(document)
    document["ladders"][0]["rungs"][0].pop("same_work")
    assert [error.validator for error in validator.iter_errors(document)] == ["required"]


def test_dense_json_is_the_same_document_a_line_for_each_kernel(fixtures: Path) -> None:
    """The JSON for programs has the same keys and values as that for people, and can be read by lines."""
    reports = analyze_paths([fixtures / "synthetic" / "attention.synthetic.ncu-rep"]).reports
    analyses = [analysis for report in reports for analysis in report.analyses]
    text = "".join(json_lines(analyses, reports))
    assert text == "".join(json_lines(iter(analyses), reports))
    assert json.loads(text) == json.loads(to_json(analyses, reports))
    assert [json.loads(line.rstrip(",")) for line in text.splitlines()[1:-1]] == json.loads(text)["kernels"]
    assert json.loads("".join(json_lines([]))) == json.loads(to_json([]))


def test_verdicts_findings_and_flags_are_names_of_pages(fixtures: Path) -> None:
    """Every class, finding and flag in the JSON is the name of a page, as the schema says."""
    reports = analyze_paths([fixtures / "synthetic" / "attention.synthetic.ncu-rep"]).reports
    kernels = to_document([analysis for report in reports for analysis in report.analyses])["kernels"]
    named = {f"verdicts/{kernel['verdict']['bound']}" for kernel in kernels}
    named |= {f"findings/{finding['id']}" for kernel in kernels for finding in kernel["findings"]}
    named |= {f"flags/{flag}" for kernel in kernels for flag in kernel["flags"]}
    assert len(named) > 3
    assert named <= everything().keys()


def test_documents_keep_to_the_schema(fixtures: Path) -> None:
    """Stored reports are valid; documents with missing or unknown keys are not."""
    (report,) = analyze_paths([fixtures / "synthetic" / "attention.synthetic.ncu-rep"]).reports
    document = json.loads(json.dumps(to_document(report.analyses)))
    validator = Draft202012Validator(json.loads(schema_text()))
    validator.validate(document)
    document["kernels"][0].pop("flags")
    document["kernels"][1]["more"] = 1
    assert {error.validator for error in validator.iter_errors(document)} == {"required", "additionalProperties"}
