"""Compare ncu's text with its CSV: three published texts converted by hand, and NVIDIA's exports printed as text."""

from __future__ import annotations

import csv
import gzip
import io
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.printing import printed

from rooflens.ingest.reports.read import read_bytes
from rooflens.ingest.reports.report import ReadReport
from rooflens.model.analyze import analyze
from rooflens.model.records import Analysis, Kernel

_IDENTITY = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC",
)  # fmt: skip
_COLUMNS = (
    *_IDENTITY, "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Type",
    "Rule Description", "Estimated Speedup Type", "Estimated Speedup",
)  # fmt: skip

_RULES_BY_HAND = {
    "ncu_cublastc_8192": (
        "SOLBottleneck", "SOLFPRoofline", "HighPipeUtilization", "MemoryL2Compression", "IssueSlotUtilization",
        "CPIStall", "CPIStall", "LaunchConfiguration", "TheoreticalOccupancy",
    ),
    "ncu_cutlass_8192": (
        "SOLBottleneck", "SOLFPRoofline", "HighPipeUtilization", "MemoryL2Compression", "MemoryCacheAccessPattern",
        "IssueSlotUtilization", "CPIStall", "CPIStall", "FPInstructions", "LaunchConfiguration", "TheoreticalOccupancy",
        "UncoalescedGlobalAccess",
    ),
    "ncu_sm120_mma_warptile_8192": (
        "SOLBottleneck", "SOLFPRoofline", "HighPipeUtilization", "MemoryCacheAccessPattern", "MemoryCacheAccessPattern",
        "IssueSlotUtilization", "CPIStall", "CPIStall", "TheoreticalOccupancy", "UncoalescedSharedAccess",
    ),
}  # fmt: skip
"""The rules of each text, in their order, read by eye."""


@pytest.fixture(scope="session")
def texts(corpus: Path) -> Path:
    """Return the folder of published texts; skip the test if it is missing."""
    folder = corpus.parent / "outcomes" / "texts"
    if not folder.is_dir():
        pytest.skip(f"no published texts at {folder}")
    return folder


def _by_hand(text: str, rules: tuple[str, ...]) -> str:
    """Convert a text of one kernel to a details export by its fixed columns and the manually read rules."""
    lines = text.splitlines()
    process = re.match(r"\[(\d+)\] (\S+)@(\S+)", lines[0])
    kernel = re.match(
        r"  (.+) (\(\d+, \d+, \d+\))x(\(\d+, \d+, \d+\)), Context (\d+), Stream (\d+), Device (\d+), CC (\S+)", lines[1]
    )
    assert process
    assert kernel
    name, grid, block, context, stream, device, capability = kernel.groups()
    identity = ("0", *process.groups(), name, context, stream, block, grid, device, capability)
    stream_out = io.StringIO()
    writer = csv.writer(stream_out, quoting=csv.QUOTE_ALL)
    writer.writerow(_COLUMNS)
    section, words, left = "", [""], list(rules)

    def end_of_rule() -> None:
        if words[0]:
            found = re.match(r"Est\. (Local )?Speedup: ([\d.]+)%", words[1])
            said = " ".join(line.strip() for line in words[2 if found else 1 :])
            speedup = ("local" if found[1] else "global", found[2]) if found else ("", "")
            writer.writerow([*identity, section, "", "", "", left.pop(0), words[0], said, *speedup])
        words[:] = [""]

    for line in lines[2:]:
        tag = re.match(r"    (OPT|INF|WRN)   (.*)", line)
        row = re.fullmatch(r"    (\S(?:.*?\S)?)  +(?:(\S+) +)?(\S+)\s*", line)
        if tag:
            end_of_rule()
            words[:] = [tag[1], tag[2]]
        elif line.startswith("          ") and words[0]:
            words.append(line)
        else:
            end_of_rule()
            if line.startswith("    Section: "):
                section = line.removeprefix("    Section: ")
            elif row and "---" not in line and not line.startswith("    Metric Name"):
                writer.writerow([*identity, section, row[1], row[2] or "", row[3]])
    end_of_rule()
    assert not left
    return stream_out.getvalue()


def _alike(analysis: Analysis) -> Analysis:
    """Remove what depends on the form of the file: digest, NVTX ranges, and white space within a rule's text."""
    return replace(analysis, kernel=_same(analysis.kernel))


def _same(kernel: Kernel) -> Kernel:
    rules = tuple(replace(rule, section="", message=" ".join(rule.message.split())) for rule in kernel.rules)
    return replace(kernel, digest="", rules=rules, nvtx_range=None)


def _assert_same(text: ReadReport, table: ReadReport) -> None:
    assert text.run.reader == "text"
    assert table.run.reader == "csv"
    assert len(text.kernels) == len(table.kernels) > 0
    assert text.loss is None
    assert text.notes == table.notes
    for one, other in zip(text.kernels, table.kernels, strict=True):
        assert _same(one) == _same(other)
        found, expected = (_alike(analyze(replace(kernel, nvtx_range=None))) for kernel in (one, other))
        assert found == expected


@pytest.mark.parametrize("name", _RULES_BY_HAND)
def test_a_published_text_is_read_as_its_export_would_be(texts: Path, name: str) -> None:
    """Class, limiter and every number equal those of the same output converted by hand."""
    text = (texts / f"{name}.txt").read_text(encoding="utf-8")
    by_hand = _by_hand(text, _RULES_BY_HAND[name])
    _assert_same(read_bytes(text.encode(), "x"), read_bytes(by_hand.encode(), "x"))


@pytest.mark.parametrize(
    ("name", "said", "gpu"),
    [
        ("ncu_cublastc_8192", ("balanced", "l1", 1_560_000), "NVIDIA H100 80GB HBM3 (guessed)"),
        ("ncu_cutlass_8192", ("compute", "tensor", 1_920_000), "NVIDIA H100 80GB HBM3 (guessed)"),
        ("ncu_sm120_mma_warptile_8192", ("compute", "tensor", 6_750_000), None),
    ],
)
def test_what_the_published_texts_say(
    texts: Path, name: str, said: tuple[str, str | None, float], gpu: str | None
) -> None:
    """The verdicts can be read off the texts; two workstation boards fit the third text, so no GPU is guessed."""
    (kernel,) = read_bytes((texts / f"{name}.txt").read_bytes(), "x").kernels
    found = analyze(kernel)
    unit = (found.verdict.resource or "").partition("_")[0] or None
    assert (found.verdict.bound, unit, kernel.duration_ns) == said
    assert kernel.gpu == gpu


def _exports(corpus: Path) -> list[Path]:
    return [*sorted(corpus.glob("cli/*.details.*.csv.gz")), *sorted(corpus.glob("*details.csv"))]


def test_a_printed_export_is_read_as_the_export(corpus: Path) -> None:
    """Text made from NVIDIA's own details exports gives the same numbers, verdicts and findings."""
    files = _exports(corpus)
    assert files
    for file in files:
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        table = data.decode()
        table = table[table.index('"ID"') :]
        _assert_same(read_bytes(printed(table).encode(), "x"), read_bytes(table.encode(), "x"))


def test_the_layout_of_2020_holds_the_same_numbers(corpus: Path) -> None:
    """In fixed columns without headings, a kernel's line has a date and no sizes, and no GPU is guessed from it."""
    for file in sorted(corpus.glob("cli/*.details.auto.csv.gz")):
        table = gzip.decompress(file.read_bytes()).decode()
        text, same = read_bytes(printed(table, is_plain=True).encode(), "x"), read_bytes(table.encode(), "x")
        assert len(text.kernels) == len(same.kernels) > 0
        for one, other in zip(text.kernels, same.kernels, strict=True):
            of_its_gpu = {name for name, source in other.counter_sources.items() if "SMs" in source} | {"sm_count"}
            counters = {name: v for name, v in other.counters.items() if name in one.counters or name not in of_its_gpu}
            assert (one.counters, one.stalls, one.name) == (counters, other.stalls, other.name)
            assert (one.grid, one.compute_capability) == (None, None)
