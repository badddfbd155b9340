"""Machine code is read where an answer is made of it, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.encoded_code import report_of_loops

import rooflens as rl
from rooflens.ingest.cubin.modules import Modules
from rooflens.ingest.reports.read import ReadOptions, read_report


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the kernels whose code is asked for from now on."""
    names: list[str] = []
    original = Modules.module

    def noted(self: Modules, source: bytes, name: str) -> Any:
        names.append(name)
        return original(self, source, name)

    monkeypatch.setattr(Modules, "module", noted)
    return names


def test_code_is_read_for_verdicts_alone(tmp_path: Path, listed: list[str]) -> None:
    """Names, GPUs and stored values need none of it; whoever judges a launch gets its loops."""
    path = report_of_loops(tmp_path / "loops.ncu-rep", 2, 1)
    bare = read_report(path, "loops", ReadOptions(reads_code=False))
    assert [kernel.gpu for kernel in bare.kernels] == ["NVIDIA H100 80GB HBM3"] * 2
    assert not any(kernel.inside or kernel.hotspots for kernel in bare.kernels)
    assert not listed
    report = rl.open(path)
    assert set(listed) == {"kernel"}
    assert all(kernel.analysis.kernel.inside for kernel in report)
    listed.clear()
    assert report[0].metrics()
    assert not listed


def test_a_server_lists_reports_without_their_code(tmp_path: Path, listed: list[str]) -> None:
    """The list has names and GPUs, which a folder of reports is asked for often."""
    pytest.importorskip("mcp")
    from rooflens.mcp.answers import Answers  # noqa: PLC0415 - an extra
    from rooflens.mcp.root import Root  # noqa: PLC0415 - as above

    report_of_loops(tmp_path / "loops.ncu-rep", 2, 1)
    assert "H100" in str(Answers(Root(tmp_path)).list_reports())
    assert not listed
