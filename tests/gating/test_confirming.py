from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from support import fake_ncu, samples

from rooflens.gating.confirming import reruns
from rooflens.model.compare.compare import Side
from rooflens.workloads.registry import find_workload


def test_a_bundled_workload_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its binary stands in another cache here: the program is the one that a plan of today names, the options stay."""
    case = find_workload("saxpy").cases[0]
    sizes = " ".join(f"--{name} {value}" for name, value in case.parameters.items())
    line = f"ncu --metrics a,b --nvtx --export out/x /cache/saxpy-sm_90-{'0' * 64} {sizes} --iterations 1"
    asked: list[Any] = []

    def plan(request: Any, *, dry_run: bool) -> Any:
        asked.append((request.target.workload.name, request.target.case.name, dry_run))
        return SimpleNamespace(collection=SimpleNamespace(program=("/here/saxpy", "--n", "1")))

    monkeypatch.setattr("rooflens.collecting.make_plan", plan)
    report = samples.report(samples.every_verdict()[:1])
    side = Side("head", (replace(report, run=replace(report.run, command_line=line)),))
    (rerun,) = reruns(side, tmp_path, str(fake_ncu.install(tmp_path / "bin")))
    assert asked == [("saxpy", case.name, False)]
    assert rerun.argv[1:] == (
        *("--metrics", "a,b", "--nvtx", "--export", str(tmp_path / "again_0.ncu-rep"), "--force-overwrite"),
        *("/here/saxpy", "--n", "1"),
    )
