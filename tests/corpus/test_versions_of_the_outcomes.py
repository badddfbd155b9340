"""Versions of public programs: their order, the fastest, and the causes beside the changes named by their authors."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import rooflens as rl
from rooflens.cli.group import main
from rooflens.model.compare.causes import MOST_NAMED, causes

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = {
    "coalesce": {"sectors"},
    "tile": {"switch", "bytes"},
    "results": {"threads"},
    "elements": {"threads"},
    "block": {"block"},
    "pad": {"conflicts"},
    "divergence": {"lanes"},
    "local": {"switch"},
    "wide": {"wide"},
    "inflight": {"waits"},
    "barrier": {"waits"},
}
"""Class of a change -> the topics of causes that name it."""

LADDERS = {
    "armleth__cuda-mlp-inference": (
        """report v2 v3_loop_unroll v4_8_per_thread v5_4_per_thread v6_1d_1_per_thread v7_1d_1_per_thread_blocked
        v7_1d_4_per_thread_blocked v8_1d_4_per_thread_stripped""",
        "v6_1d_1_per_thread",
    ),
    "AshunFeiyu__Cuda_Gemm_Practice": ("v1_alter v1_alter_1 v7_alter v9 v9_alter", "v7_alter"),
    "Swagatam1812__hpca-gpu-memory-profiling": ("naive variant1 variant2 variant3", "variant2"),
    "LeRatonLaveurSolitaire__A5_TP_conway": (
        "profile profile3 profile4 profile32_1 profile3_16 profilewidth_height profilebasic profile32_3",
        "profile32_3",
    ),
}
"""Folder -> its versions in order, and the fastest one on the GPU and with the work that most have."""


@pytest.fixture(scope="module")
def outcomes(corpus: Path) -> Path:
    """Return the folder of outcomes beside the corpus."""
    folder = corpus.parent / "outcomes"
    if not folder.is_dir():
        pytest.skip(f"no outcomes at {folder}")
    return folder


@pytest.mark.parametrize("folder", LADDERS)
def test_all_versions_of_a_folder_are_compared_in_order(outcomes: Path, folder: str) -> None:
    """The JSON lists every side once, in order, with the fastest marked and a step to each comparable version."""
    labels, fastest = LADDERS[folder]
    done = CliRunner().invoke(main, ["compare", str(outcomes / "reports" / folder), "--format", "json"])
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    (ladder,) = document["ladders"]
    rungs = ladder["rungs"]
    assert [rung["label"] for rung in rungs] == labels.split()
    assert [rung["label"] for rung in rungs if rung["fastest"]] == [fastest]
    assert [rung["step"] is None for rung in rungs[1:]] == [rung["not_compared"] == "work" for rung in rungs[1:]]
    assert all(rung["time_ns"]["median"] > 0 for rung in rungs)


def test_reports_of_versions_begin_with_the_ladder(outcomes: Path, tmp_path: Path) -> None:
    """The page shows the versions in order and has no ranking."""
    page = tmp_path / "page.html"
    folder = "armleth__cuda-mlp-inference"
    done = CliRunner().invoke(main, ["report", str(outcomes / "reports" / folder), "-o", str(page)])
    assert done.exit_code == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    places = [text.index(f">{label}</a>") for label in LADDERS[folder][0].split()]
    assert places == sorted(places)
    assert 'class="ranking"' not in text
    assert "of GPU time</span>" not in text


def test_causes_name_what_authors_changed(outcomes: Path) -> None:
    """For most pairs whose change has a class, the first causes name it."""
    reports: dict[str, rl.Report] = {}
    named, known = [], []
    with (outcomes / "siblings.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            path, _, index = row["faster"].partition("#")
            for one in (row["path"], path):
                reports.setdefault(one, rl.open(outcomes / "reports" / one))
            before = reports[row["path"]].analyzed.reports[0].analyses[int(row["index"])]
            after = reports[path].analyzed.reports[0].analyses[int(index)]
            if not row["classes"]:
                continue
            known.append(row["change"])
            topics = {cause.topic for cause in causes(before, after)[:MOST_NAMED]}
            if topics & set().union(*(TOPICS[one] for one in row["classes"].split(","))):
                named.append(row["change"])
    assert len(named) >= 0.85 * len(known), [change for change in known if change not in named]
