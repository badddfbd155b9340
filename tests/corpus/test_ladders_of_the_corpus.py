"""Ladders of public programs say the same in JSON, text, Markdown and page: which rungs are compared, and why not."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec import Struct

from rooflens.cli.group import main
from rooflens.format import significant
from rooflens.model.compare.compare import DEFAULT_THRESHOLD

GEMM = "outcomes/reports/AshunFeiyu__Cuda_Gemm_Practice"
LIFE = "outcomes/reports/LeRatonLaveurSolitaire__A5_TP_conway"
MATRIX = "outcomes/reports/armleth__cuda-mlp-inference"
CONV = "outcomes/reports/Swagatam1812__hpca-gpu-memory-profiling"
HEADS = "outcomes/reports/MattJBorowski1991__QuantizedMHA"
INT8 = "outcomes/reports/MattJBorowski1991__TensorCorePTX-int8"
INT4 = "outcomes/reports/MattJBorowski1991__TensorCorePTX-int4"


class Case(Struct, frozen=True):
    """One ladder.

    Attributes:
        places: What is given to `compare`.
        works: For each rung, whether it did the work of most; None if nothing recorded tells.
        factors: Time of the first over that of each rung, from the durations in the reports; None if not compared.
        fastest: The rung to go on from; empty if nothing is compared.
        why: Part of what is said of the last rung that is not compared.
    """

    places: tuple[str, ...]
    works: tuple[bool | None, ...]
    factors: tuple[float | None, ...]
    fastest: str = ""
    why: str = ""


CASES = {
    "another size by arguments, FLOPs and threads": Case(
        (f"{GEMM}/gemm_v1_alter.ncu-rep", f"{GEMM}/gemm_v9.ncu-rep"),
        (True, False),
        (1, None),
        why="901 MFLOP, not 2.15",
    ),
    "one program at two sizes": Case(
        (f"{HEADS}/fa_run2_N4096.txt", f"{HEADS}/fa_run2_N8192.txt"), (True, None), (1, None), why="other sizes"
    ),
    "more and fewer threads where no FLOPs are counted": Case(
        (f"{LIFE}/kernel_profile3.ncu-rep", f"{LIFE}/kernel_profile4.ncu-rep", f"{LIFE}/kernel_profile32_3.ncu-rep"),
        (True, True, True),
        (1, 77.76 / 52.84, 77.76 / 6.41),
        "profile32_3",
    ),
    "more threads where nothing is counted, as the user named them": Case(
        (f"{HEADS}/fa_tc_v1a.txt", f"{HEADS}/fa_tc_v2.txt"), (True, None), (1, 5.58 / 8.41), "fa_tc_v1a"
    ),
    "another size by its name where nothing is counted": Case(
        (f"{HEADS}/fa_run2_N4096.txt", f"{HEADS}/fa_run2_N8192.txt"),
        (True, None),
        (1, None),
        why="other sizes by its name",
    ),
    "another type": Case((f"{INT8}/wmma.txt", f"{INT4}/wmma.txt"), (True, True), (1, 68.47 / 90.11), "wmma"),
    "a slower version": Case(
        (f"{MATRIX}/report.ncu-rep", f"{MATRIX}/report_v4_8_per_thread.ncu-rep"),
        (True, True),
        (1, 52.58 / 151.3),
        "report",
    ),
    "nine versions in a folder": Case(
        (MATRIX,),
        (True,) * 9,
        tuple(52.58 / us for us in (52.58, 67.46, 67.78, 151.3, 81.44, 47.10, 47.10, 66.43, 47.81)),
        "v6_1d_1_per_thread",
    ),
    "a library's kernel beside ours in one report": Case(
        (f"{GEMM}/gemm_v7_alter.ncu-rep",), (True, True), (1, 163.1 / 142.6), "gemm"
    ),
    "another GPU among versions": Case(
        (CONV,), (True,) * 4, (1, 37.55 / 7.83, 37.55 / 4.635, None), "variant2", "ran on NVIDIA RTX A6000"
    ),
}


@pytest.fixture(scope="module")
def shared(corpus: Path) -> Path:
    """Return the folder that holds corpus and outcomes."""
    if not (corpus.parent / "outcomes").is_dir():
        pytest.skip(f"no outcomes beside {corpus}")
    return corpus.parent


def run(*arguments: str | Path) -> str:
    """Run the command and return what it prints."""
    done = CliRunner().invoke(main, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return done.stdout


def flat(text: str) -> str:
    """Reduce any markup to its words, and any white space to one space."""
    bare = re.sub(r"<script.*?</script>|<style.*?</style>", "", text, flags=re.DOTALL)
    words = html.unescape(re.sub(r"<[^>]+>", " ", bare)).replace("\\", "").replace("\u2192", "->")
    return re.sub(r"\s+", " ", words)


def factor_said(factor: float, text: str) -> bool:
    """Return whether a text has a factor, by its direction; one below the threshold is called as fast."""
    words = f"{significant(max(factor, 1 / factor))}x {'faster' if factor > 1 else 'slower'}"
    return words in text or (abs(1 / factor - 1) <= DEFAULT_THRESHOLD and "as fast" in text)


@pytest.mark.parametrize("name", CASES)
def test_each_ladder_compares_the_same_work_alone(shared: Path, name: str, tmp_path: Path) -> None:
    """JSON has factors only between the same work; text, Markdown and page say the same about each rung."""
    case = CASES[name]
    places = [shared / place for place in case.places]
    (ladder,) = json.loads(run("compare", *places, "--format", "json"))["ladders"]
    rungs: list[dict[str, Any]] = ladder["rungs"]
    assert [rung["same_work"] for rung in rungs] == [*case.works]
    assert [rung["factor"] for rung in rungs] == [one and pytest.approx(one, rel=0.01) for one in case.factors]
    assert [Path(rung["label"]).stem for rung in rungs if rung["fastest"]] == ([case.fastest] if case.fastest else [])
    apart = [rung for rung in rungs if rung["factor"] is None]
    assert all(case.why in rung["why"] for rung in apart)
    page = tmp_path / "page.html"
    run("compare", *places, "-o", page)
    for text in (run("compare", *places, "--format", "md"), run("compare", *places), page.read_text("utf-8")):
        said = flat(text)
        assert all(f"not compared, {rung['why']}" in said for rung in apart), name
        if len(rungs) > 2:
            told = [rung["factor"] for rung in rungs[1:] if rung["factor"]]
            assert all(factor_said(factor, said) for factor in told)
        elif not apart:
            better = max(rungs[1]["factor"], 1 / rungs[1]["factor"])
            assert (
                f"{significant(better)}x {'faster' if rungs[1]['factor'] > 1 else 'slower'}" in said or "% of" in said
            )


def test_two_programs_in_one_call_are_two_ladders(shared: Path, tmp_path: Path) -> None:
    """JSON, Markdown and page of `report` have both ladders, each in order of its versions, with the same factors."""
    reports = [*(shared / GEMM).glob("*.ncu-rep"), *(shared / CONV).glob("*.ncu-rep")]
    found = json.loads(run("report", *reports, "-o", "-", "--format", "json"))["ladders"]
    labels = {one["program"]: [rung["label"] for rung in one["rungs"]] for one in found}
    assert sorted(labels.values()) == [
        ["naive", "variant1", "variant2", "variant3"],
        ["v1_alter", "v1_alter_1", "v7_alter", "v9", "v9_alter"],
    ]
    page = tmp_path / "page.html"
    run("report", *reports, "-o", page)
    for text in (run("report", *reports, "-o", "-", "--format", "md"), page.read_text("utf-8")):
        said = flat(text)
        for one in found:
            assert all(f"not compared, {rung['why']}" in said for rung in one["rungs"] if rung["factor"] is None)
            factors = [rung["factor"] for rung in one["rungs"][1:] if rung["factor"]]
            assert all(factor_said(factor, said) for factor in factors)


def test_strangers_have_no_factor(shared: Path) -> None:
    """With --anyway two programs without a common kernel are shown side by side, without a factor between them."""
    pair = (shared / "corpus/cs599k__2025-04-21-77_06-MT.ncu-rep", shared / "corpus/GPU-MMS__profile.ncu-rep")
    text = run("compare", *pair, "--anyway")
    assert "not compared, no kernel is on both sides" in text
    assert not re.search(r"\dx (faster|slower)", text)
