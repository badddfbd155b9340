from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import write_accuracy
from check import SCHEMA_VERSION
from support.loops import for_all

from rooflens.errors import InputError

OFF = {
    "name": "gemm.fp8: a|b",
    "measured": 2.0,
    "compared": 1.0,
    "unit": "FLOP",
    "kind": "must",
    "ratio": 2.0,
    "is_off": True,
}
COST = {"program": "saxpy", "way": "standard", "passes": 5, "kernels": 1, "wall_s": 3.0, "report": "x", "error": ""}
RESULTS: dict[str, Any] = {
    "schema_version": SCHEMA_VERSION,
    "is_checked": True,
    "recorded": [{"date": "2026-01-02"}],
    "doctor": [{"name": "GPU", "finding": "NVIDIA H200"}],
    "rows": [OFF, {**OFF, "name": "finding", "kind": "finding", "is_off": False}],
    "costs": [
        COST,
        {**COST, "way": "alone", "passes": None, "kernels": 0, "wall_s": 1.0, "report": None},
        {**COST, "way": "set_full", "passes": 39, "wall_s": 11.0},
        {**COST, "way": "deep", "passes": None, "error": "out of memory", "report": None},
    ],
    "replay_passes": {"saxpy.standard": 4.0, "saxpy.set_full": 40.0},
    "switches": [
        {
            "program": "saxpy",
            "way": "again",
            "compared": 9,
            "equal": 8,
            "missing": [],
            "changed_counts": [],
            "largest": ["gpu__time_duration.sum", 0.01],
            "passes": [5.0, 4.0],
        },
        {"program": "fma", "way": "again", "error": "other kernels"},
    ],
    "calibrations": [
        {
            "gpu": "NVIDIA H200",
            "rates": {
                "dram_read": {"median": 4.4e12, "min": 4.3e12, "max": 4.5e12, "unit": "byte/s", "sm_clock_hz": 1.9e9},
                "tensor_bf16_wgmma": {"median": 8e14, "min": 8e14, "max": 8e14, "unit": "FLOP/s", "sm_clock_hz": None},
            },
        }
    ],
    "overhead": [
        {
            "name": "tiny_launches.graph",
            "launches": 1000,
            "wall_ns": 2e6,
            "kernel_ns": 1.5e6,
            "cold_ns": 1.8e6,
            "profiled_ns": 1.8e6,
            "slowdown": 1.2,
            "slowdown_cold": 1.0,
            "gap_share": 0.25,
        }
    ],
    "script": [
        {"name": "whole", "kernels": 5, "kernel_ns": 9e3, "by_range": {"": 2, "step": 3}},
        {"name": "x", "error": "cut"},
    ],
    "script_runs": [{"name": "whole", "command": "profile", "status": 0, "wall_s": 21.0}],
    "judged": [
        {
            "workload": "gemm",
            "case": "bf16",
            "verdict": "latency",
            "expected": "compute",
            "as_expected": False,
            "is_whole": False,
            "flop_ratio": 0.5,
            "dram_ratio": None,
        }
    ],
}


def test_the_document_is_what_the_results_give() -> None:
    """The measured half of explanation/accuracy.md is generated from the kept results, or says that there are none."""
    document = write_accuracy.DOCUMENT.read_text(encoding="utf-8")
    results = write_accuracy.stored()
    assert document == write_accuracy.renewed(document, results, write_accuracy.explanations())
    assert document.count("Not yet run on a GPU.") == (0 if results else 1)


@for_all(
    "line",
    [
        "| date | 2026-01-02 |",
        "| gemm.fp8: a/b | 2 | 1 | FLOP | 2.00000 | **not explained** |",
        "| finding | 2 | 1 | FLOP | 2.00000 | *finding* |",
        "| saxpy | standard | 1 | 4 | 1.0 | 3.0 | 2.0 | 1.0 |",
        "| saxpy | alone | - | - | - | 1.0 | - | - |",
        "| saxpy | set_full | 1 | 40 | 10.0 | 11.0 | 10.0 | 5.0 |",
        "| saxpy | deep | out of memory | - | - | 3.0 | - | - |",
        "| saxpy | again | 9 | 8 | none | none | 1.00% of `gpu__time_duration.sum` | 5 to 4 |",
        "| `dram_read` | 4.4 Tbyte/s | 4.5% | 1900 | 4.8 Tbyte/s | 91.7% |",
        "| tiny_launches.graph | 1000 | 2000.0 | 1500.0 | 25.0% | 1800.0 | 1800.0 | 1.20 | 1.00 |",
        "| whole | 5 | 9.0 | 2 in none, 3 in `step` | 21 |",
        "| gemm.bf16 | latency | compute | **not as expected** | >= 0.5000 | - |",
    ],
)
def test_every_section_has_its_table(line: str) -> None:
    """Ratios stand beside their amounts; lower bounds, errors and unexplained deviations are marked."""
    assert line in write_accuracy.render(RESULTS, {}).splitlines()


def test_a_row_that_is_off_can_be_explained() -> None:
    """A reason is shown in its row; a reason for a missing row is an error."""
    assert "| 2.00000 | sparse |" in write_accuracy.render(RESULTS, {OFF["name"]: "sparse"})
    with pytest.raises(InputError, match="no row is called `gone`"):
        write_accuracy.render(RESULTS, {"gone": "x"})


def test_results_are_kept_and_the_document_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checked results replace the part after the mark; the text before it stays."""
    for name in ("DOCUMENT", "RESULTS", "EXPLANATIONS"):
        monkeypatch.setattr(write_accuracy, name, tmp_path / name)
    (tmp_path / "DOCUMENT").write_text(f"before\n{write_accuracy.BEGIN}\nstale text\n")
    (tmp_path / "results.json").write_text(json.dumps(RESULTS))
    assert write_accuracy.main([str(tmp_path / "results.json")]) == 0
    text = (tmp_path / "DOCUMENT").read_text()
    assert text.startswith("before\n")
    assert "NVIDIA H200" in text
    assert "stale text" not in text
    assert write_accuracy.stored() == RESULTS


def test_results_that_cannot_be_written_up_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a reason fits no row of the new results, the old results and text stay."""
    for name in ("DOCUMENT", "RESULTS", "EXPLANATIONS"):
        monkeypatch.setattr(write_accuracy, name, tmp_path / name)
    (tmp_path / "DOCUMENT").write_text("before")
    (tmp_path / "EXPLANATIONS").write_text('gone = "x"')
    (tmp_path / "results.json").write_text(json.dumps(RESULTS))
    assert write_accuracy.main([str(tmp_path / "results.json")]) == 1
    assert (tmp_path / "DOCUMENT").read_text() == "before"
    assert write_accuracy.stored() is None


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "{}",
        json.dumps({**RESULTS, "is_checked": False}),
        json.dumps({**RESULTS, "schema_version": SCHEMA_VERSION - 1}),
        None,
    ],
)
def test_what_holds_no_checked_results_is_refused(
    tmp_path: Path, content: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Results that are unchecked, of another schema or from another file are refused."""
    if content is not None:
        (tmp_path / "results.json").write_text(content)
    before, kept = write_accuracy.DOCUMENT.read_text(), write_accuracy.stored()
    assert write_accuracy.main([str(tmp_path / "results.json")]) == 1
    assert "hint: " in capsys.readouterr().err
    assert write_accuracy.DOCUMENT.read_text() == before
    assert write_accuracy.stored() == kept
