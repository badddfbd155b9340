"""No compiled code takes more than seconds and a gigabyte, or affects the numbers of its report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.cubin_writer import BOMBS, END, SET_ADDRESS, STEP, brimful, cubin, line_table, report_with, source_of

from rooflens.ingest.cubin.budget import MOST
from rooflens.ingest.cubin.modules import Modules
from rooflens.ingest.messages.messages import decode
from rooflens.ingest.reports.container import outline
from rooflens.ingest.reports.inputs import has_name_of_report
from rooflens.ingest.reports.read import read_bytes
from rooflens.ingest.reports.unpacking import MAX_UNPACKED_BYTES, unpacked

resource = pytest.importorskip("resource")

_MOST_BYTES = 1 << 30
_MOST_SECONDS = 10


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))


def _analyzed(report: Path) -> tuple[dict[str, Any], str]:
    """Analyze a report in a process with limited memory and time; return its JSON and its messages."""
    command = [sys.executable, "-m", "rooflens", "analyze", str(report), "--format", "json"]
    done = subprocess.run(  # noqa: S603 - our own command; no threads here
        command, capture_output=True, text=True, check=False, timeout=120, preexec_fn=_limit
    )
    return json.loads(done.stdout or "{}"), done.stderr


@pytest.mark.parametrize(
    "bomb",
    BOMBS,
    ids=[bomb.name for bomb in BOMBS],
)
def test_code_that_takes_too_much_costs_its_lines_alone(bomb: Any, tmp_path: Path) -> None:
    """A bomb is read within seconds and a gigabyte, with all numbers, and a note says what is missing."""
    report = tmp_path / "bomb.ncu-rep"
    report.write_bytes(bomb.write())
    found, said = _analyzed(report)
    assert {kernel["duration_ns"] for kernel in found["kernels"]} == {1000.0}
    assert bomb.note in said
    assert bool(bomb.note) == ("of kernel `kernel" in said)


def test_all_that_may_be_taken_is_seconds_and_a_gigabyte(tmp_path: Path) -> None:
    """A report that stays just within every limit is read with its lines, and without a note about its code."""
    report = tmp_path / "brimful.ncu-rep"
    report.write_bytes(brimful())
    found, said = _analyzed(report)
    assert found["kernels"][0]["hotspots"][0]["text"] == "ab"
    assert "of kernel" not in said


def test_notes_are_few_and_short() -> None:
    """A report of many modules with endless names gives only a few lines of notes."""
    sources = [source_of(b"\x7fELF", reference=1 + number) for number in range(100)]
    places, start = [], 0
    for source in sources:
        places.append((start, start + len(source)))
        start += len(source)
    modules = Modules(b"".join(sources), places)
    for number in range(100):
        assert modules.module(source_of(b"", reference=1 + number), "k" * 10_000) is None
    assert len(modules.notes) == 11
    assert max(map(len, modules.notes)) < 200
    assert modules.notes[-1].endswith("90")


def test_a_name_from_a_cubin_is_short_and_unicode() -> None:
    """A hot line's file name is cut, with invalid bytes replaced, and still finds the source text."""
    name = b"k\xff" * 10_000
    binary = cubin(line_table(SET_ADDRESS + STEP + END, files=[(name, 1)]))
    report = report_with(source_of(binary, files={b"/src/" + name: b"\n\nx = \xff;\n"}))
    (kernel,) = read_bytes(report, "report").kernels
    spot = next(spot for spot in kernel.hotspots if spot.by == "line")
    assert spot.file == ("/src/" + "k\N{REPLACEMENT CHARACTER}" * 200)[:400]
    assert spot.text == "x = \N{REPLACEMENT CHARACTER};"


@pytest.mark.corpus
def test_published_code_is_far_within_the_bounds(corpus: Path) -> None:
    """Every cubin of the published reports is read without a note, and uses at most a tenth of any limit."""
    most = dict.fromkeys(MOST, 0)
    noted = {}
    for path in sorted(filter(has_name_of_report, corpus.iterdir())):
        with unpacked(path, MAX_UNPACKED_BYTES) as plain:
            data = plain.read_bytes()
        if not data.startswith(b"NVR"):
            continue
        found = outline(data)
        messages = [decode("SourceData", data[start:end]) for start, end in found.sources]
        modules = Modules(data, found.sources)
        for message in messages:
            if message.Binary.startswith(b"\x7fELF"):  # some are in NVIDIA's own format
                modules.module(source_of(b"", reference=message.Reference), "")
        noted |= {path.name: modules.notes} if modules.notes else {}
        most = {what: max(most[what], MOST[what] - modules.budget.left[what]) for what in MOST}
    assert not noted
    assert not {what: amount for what, amount in most.items() if amount > MOST[what] / 10}
