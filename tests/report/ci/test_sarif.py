from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from support import samples

from rooflens.cli.group import main
from rooflens.model.records import Analysis, Evidence, Finding, Gain, Hotspot, Place, Severity
from rooflens.report.ci.sarif import to_sarif


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required.split(),
        "properties": {**properties, "properties": {"type": "object"}},
    }


_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_MESSAGE = _object("text", text=_TEXT, markdown=_TEXT)
_ARTIFACT = _object("uri", uri={"type": "string", "format": "uri-reference"}, uriBaseId=_TEXT)
_LOCATION = _object(
    "physicalLocation",
    id=_COUNT,
    physicalLocation=_object(
        "artifactLocation region",
        artifactLocation=_ARTIFACT,
        region=_object("startLine", startLine={"type": "integer", "minimum": 1}),
    ),
    logicalLocations={"type": "array", "uniqueItems": True, "items": _object("name kind", name=_TEXT, kind=_TEXT)},
    message=_MESSAGE,
)
_RULE = _object(
    "id", id=_TEXT, name=_TEXT, shortDescription=_MESSAGE, fullDescription=_MESSAGE, help=_MESSAGE, helpUri=_TEXT
)
_RESULT = _object(
    "message",
    ruleId=_TEXT,
    ruleIndex=_COUNT,
    kind={"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
    level={"enum": ["none", "note", "warning", "error"]},
    message=_MESSAGE,
    locations={"type": "array", "items": _LOCATION},
    relatedLocations={"type": "array", "uniqueItems": True, "items": _LOCATION},
    partialFingerprints={"type": "object", "additionalProperties": _TEXT},
)
_DRIVER = _object("name", name=_TEXT, version=_TEXT, rules={"type": "array", "uniqueItems": True, "items": _RULE})
_RUN = _object(
    "tool",
    tool=_object("driver", driver=_DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    originalUriBaseIds={"type": "object", "additionalProperties": _object("", uri=_TEXT, description=_MESSAGE)},
    results={"type": "array", "items": _RESULT},
)
SCHEMA = _object(
    "version runs",
    **{"$schema": {"type": "string", "format": "uri"}},
    version={"enum": ["2.1.0"]},
    runs={"type": "array", "items": _RUN},
)
"""What of SARIF 2.1.0 is used, as the schema of OASIS has it: no other key is allowed."""


def written(analyses: list[Analysis], root: Path, said: str = "") -> dict[str, Any]:
    """Write SARIF, hold it to the schema and to what the standard asks beyond it, and return its one run."""
    text, left_out = to_sarif(analyses, root)
    assert left_out == said
    document = json.loads(text)
    jsonschema.validate(document, SCHEMA, format_checker=jsonschema.FormatChecker())
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert (result["kind"] == "fail") is (result["level"] != "none")  # 3.27.10
        for location in (*result["locations"], *result.get("relatedLocations", ())):
            base = location["physicalLocation"]["artifactLocation"].get("uriBaseId")
            assert base is None or base in run["originalUriBaseIds"]
    found: dict[str, Any] = run
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a checkout with some files."""
    for name in ("a.cu", "k.cu", "src/s.cu"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def with_findings(*findings: Finding, name: str = "k<float>(int)") -> Analysis:
    """Make a kernel with findings."""
    one = samples.every_verdict()[0]
    return replace(one, kernel=replace(one.kernel, name=name, function_name=name.partition("<")[0]), findings=findings)


def finding(*places: tuple[str | None, int | None], severity: Severity = "limiter", move: str = "do less") -> Finding:
    """Make a finding at lines, the first of which has most."""
    where = tuple(Place(Hotspot("line", file, line), 0.5 / (i + 1)) for i, (file, line) in enumerate(places))
    evidence = (Evidence("sectors", 31.0, "sectors/request", "x"),)
    return Finding("uncoalesced_global_load", "uncoalesced global loads", severity, evidence, move, Gain(3.7), where)


def test_a_finding_stands_at_its_worst_line(root: Path) -> None:
    """One result with the worst line as its place and the others related; its rule says what it means."""
    run = written([with_findings(finding(("/build/src/s.cu", 7), ("/build/k.cu", 3)))], root)
    (result,) = run["results"]
    (place,) = result["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "src/s.cu", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 7},
    }
    assert place["logicalLocations"] == [{"name": "k", "kind": "function"}]
    (related,) = result["relatedLocations"]
    assert related["physicalLocation"]["artifactLocation"] == {"uri": "k.cu", "uriBaseId": "SRCROOT"}
    assert result["message"]["text"] == (
        "k<float>(int): uncoalesced global loads, gain about 3.7x; 50 % of it at this line. Do less."
    )
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"] == "Uncoalesced global loads"
    assert "rooflens about uncoalesced_global_load" in rule["help"]["text"]


def test_no_file_outside_the_checkout_is_named(root: Path) -> None:
    """A header leaves its place to a line of the checkout; a finding in headers alone is left out, and counted."""
    header = ("/usr/include/x y.h", 3)
    said = "2 findings left out: /usr/include/x y.h and 1 other file are not in this checkout"
    every = with_findings(finding(header, ("k.cu", 7)), finding(header), finding(("C:\\cuda\\y.h", 1)))
    (result,) = written([every], root, said)["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "k.cu"
    assert "relatedLocations" not in result
    assert "25 % of it at this line" in result["message"]["text"]


@pytest.mark.parametrize(
    ("severity", "kind", "level"),
    [("limiter", "fail", "warning"), ("contributes", "fail", "note"), ("note", "informational", "none")],
)
def test_severities_are_levels_and_none_is_an_error(root: Path, severity: Severity, kind: str, level: str) -> None:
    """Code scanning blocks on errors, and slow code is not wrong."""
    (result,) = written([with_findings(finding(("a.cu", 1), severity=severity))], root)["results"]
    assert (result["kind"], result["level"]) == (kind, level)


def test_a_kernel_of_hardly_any_time_warns_of_nothing(root: Path) -> None:
    """A limiter of less than a hundredth of the report's GPU time is a note, still of the kind that fails."""
    long = with_findings(finding(("a.cu", 1)))
    for share, level in ((0.011, "warning"), (0.009, "note")):
        duration_ns = long.kernel.counters["duration_ns"] * share / (1 - share)
        counters = {**long.kernel.counters, "duration_ns": duration_ns}
        short = replace(long, kernel=replace(long.kernel, counters=counters, index=1))
        results = written([long, short], root)["results"]
        assert [(one["kind"], one["level"]) for one in results] == [("fail", "warning"), ("fail", level)]


def test_findings_without_lines_are_left_out(tmp_path: Path) -> None:
    """Instructions and whole kernels have no place in the code: an empty list of results is valid."""
    run = written([with_findings(finding(), finding((None, None)), finding(("a.cu", None)))], tmp_path)
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])


def test_hostile_names_are_no_links_and_no_placeholders(tmp_path: Path) -> None:
    """Brackets and braces of names are escaped as the standard says, files are valid addresses, and nothing steers."""
    evil = "k[x](http://evil){0}\\\x1b\u202e\ud800"
    run = written(
        [with_findings(finding((f"{tmp_path}/{evil}%2e", 1), ("..\\..\\up.cu", 2), move=evil), name=evil)], tmp_path
    )
    (result,) = run["results"]
    text = result["message"]["text"]
    assert "[" not in text.replace("\\[", "")
    assert "{0}" not in text.replace("{{0}}", "")
    assert "\x1b" not in text
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.isascii()
    assert "[" not in uri
    assert uri.endswith("%252e")


def test_a_finding_keeps_its_fingerprint_where_its_line_moves(root: Path) -> None:
    """The text of the line and not its number tells a finding that stays; another kernel's is another one."""

    def fingerprint(line: int, text: str | None, name: str) -> str:
        at = Place(Hotspot("line", "k.cu", line, text=text), 1.0)
        one = with_findings(replace(finding(), where=(at,)), name=name)
        (result,) = written([one], root)["results"]
        return str(result["partialFingerprints"]["rooflens/v1"])

    assert fingerprint(7, "a = b", "k<1>()") == fingerprint(9, "a = b", "k<2>()")
    assert fingerprint(7, "a = b", "k()") != fingerprint(7, "a = b", "other()")
    assert fingerprint(7, None, "k()") != fingerprint(9, None, "k()")


@pytest.mark.corpus
def test_the_command_writes_it_for_a_published_report(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every finding with a line of MW_Baseline is a result, by rules of which each is used; of a store it is equal."""
    (tmp_path / "miniWeather_mpi_openacc.F90").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    report, store = str(corpus / "GPU_workshop__MW_Baseline.ncu-rep"), str(tmp_path / "store")
    done = CliRunner().invoke(main, ["analyze", report, "--format", "sarif"])
    assert done.exit_code == 0
    CliRunner().invoke(main, ["ingest", report, "--store", store, "--raw", "none"])
    assert CliRunner().invoke(main, ["analyze", "--store", store, "--format", "sarif"]).stdout == done.stdout
    assert "/glade" not in re.sub('"report": .*', "", done.stdout)
    document = json.loads(done.stdout)
    jsonschema.validate(document, SCHEMA, format_checker=jsonschema.FormatChecker())
    (run,) = document["runs"]
    assert {result["ruleId"] for result in run["results"]} == {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    places = {
        (result["ruleId"], result["locations"][0]["physicalLocation"]["region"]["startLine"])
        for result in run["results"]
    }
    assert {("stall_long_scoreboard", 257), ("uncoalesced_global_load", 400)} <= places
