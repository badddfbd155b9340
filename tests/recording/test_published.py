"""Check that the published figures of `fixtures/published` are as promised."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import publish
import pytest

from rooflens.analyzing import analyze_paths
from rooflens.ingest.messages.messages import decode
from rooflens.ingest.reports.container import inspect, outline
from rooflens.model.records import Analysis

FIGURES = (*publish.PUBLISHED, *(origin.name for origin in publish.OTHERS))
MOST_POINTS = 1.0
"""The largest deviation of our achieved per cent from NVIDIA's, which is rounded to whole numbers."""


@pytest.fixture(scope="module")
def folder(fixtures: Path) -> Path:
    """Return the folder of the published figures."""
    return fixtures / publish.FOLDER


@pytest.fixture(scope="module")
def entries(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of their manifest by file name."""
    found = tomllib.loads((folder / publish.MANIFEST).read_text(encoding="utf-8"))
    return {path.rpartition("/")[2]: entry for path, entry in found.items()}


@pytest.fixture(scope="module")
def analyses(folder: Path) -> list[Analysis]:
    """Analyze all of them."""
    read = analyze_paths([folder])
    assert not read.failures
    return [analysis for report in read.reports for analysis in report.analyses]


def test_every_report_says_where_it_comes_from(folder: Path, entries: dict[str, dict[str, Any]]) -> None:
    """Each has an entry with its repository, commit, a licence that permits it, and what was left out."""
    assert set(entries) == {path.name for path in folder.glob("*.ncu-rep")} == set(FIGURES)
    for name, entry in entries.items():
        assert entry["licence"] in {"CC0-1.0", "MIT", "BSD-3-Clause", "Apache-2.0"}
        assert re.fullmatch(r"[0-9a-f]{40}", entry["commit"])
        assert entry["left_out"]
        container = inspect(folder / name)
        assert container.result_count == entry["kernels"]
        assert container.sessions[0].host == f"published figures of {entry['repository']}, {entry['licence']}"
        assert f"{entry['repository']} {entry['licence']} {entry['commit']}".encode() in (folder / name).read_bytes()


def test_the_notice_names_every_repository_and_licence(folder: Path, entries: dict[str, dict[str, Any]]) -> None:
    """NOTICE names each repository with its licence and its copyright notice."""
    notice = (folder / "NOTICE").read_text(encoding="utf-8")
    for entry in entries.values():
        assert f"{entry['repository']}, {entry['licence']}\n    {entry['copyright']}\n" in notice


def test_the_demo_is_of_real_figures(folder: Path) -> None:
    """`make demo` reads all published reports and no synthetic one."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    root = folder.parents[1]
    asked = [make, "-n", "demo"]
    printed = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=True).stdout  # noqa: S603 - ours
    read = re.findall(r"fixtures/\S+\.ncu-rep", printed)
    assert {f"fixtures/published/{name}" for name in FIGURES} <= set(read)
    assert not [name for name in read if "synthetic" in name]


def test_they_are_small(folder: Path) -> None:
    """All of them together take less than 6 MB."""
    assert sum(file.stat().st_size for file in folder.iterdir()) < 6_000_000


def test_they_are_of_many_gpus_and_none_is_synthetic(folder: Path, analyses: list[Analysis]) -> None:
    """They cover at least fifteen GPUs, and none is marked as synthetic."""
    assert len({analysis.kernel.gpu for analysis in analyses}) >= 15
    assert not any(analysis.kernel.synthetic for analysis in analyses)
    assert not any(inspect(path).synthetic for path in folder.glob("*.ncu-rep"))


def test_they_hold_no_code_no_path_and_no_sentence(folder: Path) -> None:
    """They contain no machine code, no source, no absolute path, and no rule text except ours."""
    for path in folder.glob("*.ncu-rep"):
        data = path.read_bytes()
        found = outline(data)
        assert not found.sources
        assert b"\x7fELF" not in data
        assert not re.findall(rb"/(?:home|root|mnt|data|opt|usr|nfs|content|glade|scratch)/\w+|\b[A-Z]:\\\w+", data)
        for place in found.places:
            result = decode("ProfileResult", data[place.start : place.end])
            assert not result.Source.ListFields()
            for rule in result.RuleResults:
                for item in rule.Body.Items:
                    assert len(item.Message.Title) < 60
                    assert re.fullmatch(
                        rb"|NVIDIA's text is left out\.|The rule returned an error: its text is left out\."
                        rb"|fp32 [\d.]+ %, fp64 [\d.]+ % of peak|busiest pipe: \w+( \(FP\))?",
                        item.Message.Text,
                    ), item.Message.Text


def test_achieved_flops_are_what_nvidia_says(analyses: list[Analysis]) -> None:
    """The achieved per cents of the fp32 and fp64 peaks agree with NVIDIA's, which the figures keep."""
    told = 0
    for analysis in analyses:
        for name, pct in (("fp32", analysis.nvidia.fp32_pct_of_peak), ("fp64", analysis.nvidia.fp64_pct_of_peak)):
            pipe = analysis.pipes.get(name)
            if pct is not None and pipe is not None and pipe.share is not None and pct > 0:
                assert abs(100 * pipe.share - pct) <= MOST_POINTS, (analysis.kernel.name, name)
                told += 1
    assert told >= 15


def test_the_ladder_climbs(folder: Path) -> None:
    """Each rung of the published GEMM ladder is faster than the one before, as their names promise."""
    (report,) = analyze_paths([folder / "ESMM-Research__profile_output.ncu-rep"]).reports
    by_name = {analysis.kernel.function_name: analysis.kernel.duration_ns or 0.0 for analysis in report.analyses}
    rungs = ("one_blocktiling", "two_blocktiling", "vectorized_blocktiling", "warptiling")
    assert all(by_name[later] < by_name[earlier] for earlier, later in pairwise(rungs))


def test_hot_spots_are_left(folder: Path) -> None:
    """The weather model's hottest line names one of its source files, and the matrix product's has opcodes."""
    (weather,) = analyze_paths([folder / "GPU_workshop__MW_Baseline.ncu-rep"]).reports
    lines = [spot for spot in weather.analyses[0].kernel.hotspots if spot.by == "line"]
    assert {spot.file for spot in lines} == {"miniWeather_mpi_openacc.F90"}
    (product,) = analyze_paths([folder / "KernelBench__matmul_kernel.ncu-rep"]).reports
    opcodes = {spot.sass for spot in product.analyses[0].kernel.hotspots if spot.by == "sass"}
    assert {"FFMA", "LDG.E"} <= opcodes
