"""`rooflens about` has an answer for everything that ncu printed of published reports."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rooflens.errors import UnknownNameError
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.report import ReadOptions
from rooflens.model.printed import find_section
from rooflens.writing.about import explained

_LARGEST_BYTES = 20_000_000
_ROW = re.compile(r" {4,}(?P<label>(?!(?:INF|OPT|WRN) )\S.*?)(?: {2,}(?P<unit>\S+))? {2,}\S+ *")


def _texts(folder: Path) -> Iterator[str]:
    """Yield what was printed, as text and CSV, whole."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".txt", ".csv"} and path.stat().st_size < _LARGEST_BYTES:
            yield path.read_text(encoding="utf-8", errors="replace")
        elif path.name.endswith(".csv.gz") and "details" in path.name:
            yield gzip.decompress(path.read_bytes()).decode("utf-8", "replace")


def _of_text(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in text.splitlines():
        if found := re.match(r"\s*Section: (.+?)\s*$", line):
            section = found[1]
            yield section, ""
        elif section and (row := _ROW.fullmatch(line)) and not row["label"].startswith(("--", "Metric Name")):
            yield section, row["label"]


def _of_csv(text: str) -> Iterator[tuple[str, str]]:
    for row in csv.DictReader(io.StringIO(text[text.index('"ID"') :])):
        section = row.get("Section Name") or ""
        if section and (row.get("Metric Name") or row.get("Rule Name")):
            yield section, ""
            yield section, row.get("Metric Name") or ""
            yield "", row.get("Rule Name") or ""


@pytest.fixture(scope="module")
def printed(corpus: Path) -> Mapping[str, set[str]]:
    """Return all that was printed at hand, labels by section, rules under none; skip without `../shared`."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for folder in (corpus, corpus.parent / "outcomes" / "printed", corpus.parent / "outcomes" / "texts"):
        for text in _texts(folder) if folder.is_dir() else ():
            rows = _of_csv(text) if '"Section Name"' in text else _of_text(text)
            for section, name in rows:
                found[section].add(name)
    assert found, "nothing printed at hand"
    return found


def _is_answered(name: str) -> bool:
    try:
        return bool(explained(name))
    except UnknownNameError:
        return False


def test_every_label_section_and_rule_of_every_print_is_explained(printed: Mapping[str, set[str]]) -> None:
    """Each section of ncu, each label under it, and each rule has an answer; a user's own sections are not ncu's."""
    own = {name for name in printed if name and find_section(name) is None}
    asked = {name for section, names in printed.items() if section not in own for name in (section, *names) if name}
    assert own <= {"Command line profiler metrics", "Load Metrics", "Store Metrics", "Shared Memory Analysis"}
    assert len(asked) > 100
    assert sorted(name for name in asked if not _is_answered(name)) == []


def test_every_rule_of_every_report_is_explained(corpus: Path) -> None:
    """Each rule whose result a published report stores has an answer, one for each stall reason included."""
    rules = set()
    for path in sorted(corpus.glob("*.ncu-rep")):
        if path.stat().st_size < _LARGEST_BYTES and path.read_bytes()[:4] == b"NVR\0":
            kernels = read_report(path, path.name, ReadOptions(texts_later=True)).kernels
            rules |= {rule.identifier for kernel in kernels[:3] for rule in kernel.rules}
    assert len(rules) > 10
    assert sorted(rule for rule in rules if not _is_answered(rule)) == []


def test_a_full_print_has_an_answer_for_each_of_its_labels(corpus: Path) -> None:
    """Of the print of the full set with most labels, all of them are explained."""
    folder = corpus.parent / "outcomes" / "texts"
    if not folder.is_dir():
        pytest.skip(f"no prints of the full set at {folder}")
    labels = [{label for _, label in _of_text(text) if label} for text in _texts(folder)]
    most = max(labels, key=len)
    assert len(most) > 60
    assert sorted(label for label in most if not _is_answered(label)) == []
