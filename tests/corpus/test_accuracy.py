"""Check the table of `benchmarks/accuracy.py` against its tolerances; see `test_oracles.py` for shares and classes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from accuracy import main, markdown
from oracle_rows import Row
from oracle_tensors import WARPGROUP

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "accuracy.py"
ROUNDING = 1e-9
"""Both sides are the same count, or made of the same counters."""
LONGER_BUSY = 0.05
"""A pipe is busy up to 5 % longer than its operations need at their peak (public reports, CC 7.5 to 12.0)."""


@pytest.mark.parametrize(
    ("key", "tolerance", "at_least"),
    [
        ("bytes_dram", ROUNDING, 54),
        ("flop_fp64", ROUNDING, 7),
        ("flop_fp32", ROUNDING, 26),
        ("flop_fp16", ROUNDING, 8),
        ("tensor_`HMMA.16816.F32.BF16`", ROUNDING, 1),
        ("tensor_`HMMA.1688.F32`", ROUNDING, 1),
        ("tensor_size", ROUNDING, 5),
        ("warpgroup_published", ROUNDING, 2),
        ("activity_`HMMA.16816.F16`, `HMMA.1688.F16`", LONGER_BUSY, 1),
        ("activity_`IMMA.16832.S8.S8.SAT`", LONGER_BUSY, 3),
        ("activity_`IMMA.8816.S8.S8.SAT`", LONGER_BUSY, 1),
        ("cli", 0.5, 172),
    ],
)
def test_numbers_are_as_near_as_the_table_says(rows: dict[str, Row], key: str, tolerance: float, at_least: int) -> None:
    """Every kernel that has both numbers is within the tolerance, and the number of kernels is as documented."""
    row = rows[key]
    assert row.tolerance <= tolerance
    assert row.kernel_count >= at_least
    assert row.outside == ()


def test_bytes_to_l2_differ_by_atomics_only(rows: dict[str, Row]) -> None:
    """Of 54 kernels only one deviates by more than 1 %, because its atomics cross in both directions."""
    row = rows["bytes_l2"]
    assert row.tolerance <= 0.01
    assert row.kernel_count >= 54
    assert [pair.report for pair in row.outside] == ["self-join-MiSTIC__profileBIGCROSS3.out.ncu-rep"]
    assert "atomics" in row.outside[0].reason


def test_what_lies_outside_has_a_reason(rows: dict[str, Row]) -> None:
    """Every outlier in every row has an explanation."""
    assert [pair for row in rows.values() for pair in row.outside if not pair.reason] == []


def test_warpgroup_instructions_are_counted_once_a_warp() -> None:
    """Two published cuBLAS kernels on a GH200 count each bf16 warpgroup instruction exactly four times."""
    assert [quoted.counts_per_instruction for quoted in WARPGROUP] == [4, 4]


def test_the_document_has_the_table(rows: dict[str, Row]) -> None:
    """Every line that the script writes about these reports is in docs/explanation/accuracy.md."""
    document = (SCRIPT.parents[1] / "docs" / "explanation" / "accuracy.md").read_text(encoding="utf-8").splitlines()
    assert [line for part in markdown(list(rows.values())) for line in part.splitlines() if line not in document] == []


def test_script_prints_its_table(corpus: Path, tmp_path: Path) -> None:
    """The script reads a given folder and prints a line for each row, including rows without numbers."""
    name = "KernelBench__matmul_kernel.ncu-rep"
    (tmp_path / name).symlink_to(corpus / name)
    done = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert "Reports: 1; kernels: 1." in done.stdout
    assert "| 1 (1) | 0 | 0 | 1.00 % | 0 of 1 |" in done.stdout
    assert "n = 0" in done.stdout
    assert "- nothing" in done.stdout


@pytest.mark.parametrize("damaged", [False, True])
def test_script_says_where_no_reports_are(tmp_path: Path, capsys: pytest.CaptureFixture[str], *, damaged: bool) -> None:
    """For a folder without readable reports, the script prints one line and a hint on stderr."""
    if damaged:
        (tmp_path / "cut.ncu-rep").write_bytes(b"NVR")
    assert main([str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert err.startswith("error: no report")
    assert err.splitlines()[1:] == [
        "",
        "hint: give a folder of `.ncu-rep` files, or name it in ROOFLENS_CORPUS",
    ]
    assert out == ""
