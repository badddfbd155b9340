"""Compare our findings with NVIDIA's rules over the published reports, and test the comparison itself."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import finding_goals as goals
import pytest
from msgspec import Struct
from msgspec.structs import replace
from nvidia_cache import AlreadyRead, Read, folders_beside, read_all
from nvidia_findings import (
    Judged,
    expected,
    holds_evidence,
    judge,
    part,
    says_collect,
    says_number,
    silent,
    timed,
    undecided,
)
from nvidia_markdown import DOC, markdown
from nvidia_markers import marked
from nvidia_ranks import first_ranks
from nvidia_results import Marker, NvidiaKernel, NvidiaResult, _side
from nvidia_topics import LOAD, STORE, choice_of, stall_id
from support.loops import for_all

from rooflens.ingest.load import Loaded
from rooflens.model.records import Kernel


@pytest.fixture(scope="module")
def reports(corpus: Path, loaded: Loaded) -> list[Read]:
    """Read the corpus and the cases, with NVIDIA's rules and with rooflens."""
    return read_all(folders_beside(corpus), AlreadyRead(loaded))


@pytest.fixture(scope="module")
def nvidia(reports: list[Read]) -> list[NvidiaKernel]:
    """Return every kernel as NVIDIA's rules see it."""
    return [nvidia for _, pairs in reports for nvidia, _ in pairs]


@pytest.fixture(scope="module")
def by_report(reports: list[Read]) -> list[tuple]:
    """Analyze every report without NVIDIA's rules."""
    return [(run, judge(pairs)) for run, pairs in reports]


@pytest.fixture(scope="module")
def judged(by_report: list[tuple]) -> list[Judged]:
    """Return every kernel as NVIDIA's rules and as we see it."""
    return [one for _, part_of in by_report for one in part_of]


def test_every_pair_of_rule_and_title_is_decided(nvidia: list[NvidiaKernel]) -> None:
    """The table of topics gives an ID, or a reason for none, for every rule result of every report."""
    assert undecided(nvidia) == set()


def test_both_readers_see_the_same_kernels(reports: list[Read]) -> None:
    """Findings are compared with the rules of the same result: index and function name agree."""
    for _, pairs in reports:
        for nvidia, kernel in pairs:
            assert (nvidia.index, nvidia.name) == (kernel.index, kernel.function_name)


def test_estimates_are_read_as_nvidia_works_them_out(nvidia: list[NvidiaKernel]) -> None:
    """A block of 9 threads leaves 23 of 32 lanes empty, 57 blocks leave 75 of 132 SMs idle: both estimates say so."""
    found = {
        (kernel.report, result.title): result
        for kernel in nvidia
        for result in kernel.results
        if result.title in {"Block Size", "Small Grid"} and result.estimate_pct is not None
    }
    block = found["A5_TP_conway__kernel_profile2.ncu-rep", "Block Size"]
    assert block.estimate_pct == pytest.approx(100 * 23 / 32)
    grid = found["sglang__profile.ncu-rep", "Small Grid"]
    assert grid.estimate_pct == pytest.approx(100 * (132 - 8) / 132)
    assert (block.scope, grid.scope, grid.kind) == ("global", "global", "optimization")


def test_uncoalesced_accesses_are_told_apart_by_their_instructions(nvidia: list[NvidiaKernel]) -> None:
    """The excess in NVIDIA's message is our sum over loads and stores, so the larger side is known."""
    kernel = next(kernel for kernel in nvidia if kernel.report.startswith("A5_TP_conway"))
    result = next(result for result in kernel.results if "excessive sectors" in result.message)
    assert f"total of {sum(kernel.excess_sectors.values())} excessive sectors" in result.message
    assert set(kernel.excess_sectors) == {LOAD, STORE}
    assert choice_of(result, kernel) == LOAD


def test_nvidias_results_have_our_finding_of_the_same_topic(judged: list[Judged]) -> None:
    """For 95 % of NVIDIA's results with an estimate of 20 % or more, we have a finding of exactly that topic."""
    results = list(expected(judged))
    missed = [(e.judged.nvidia.report, e.judged.nvidia.index, e.topic) for e in results if e.severity is None]
    assert len(results) >= 45
    assert part(e.severity is not None for e in results) >= goals.RECALL, missed


def test_every_miss_has_a_reason(judged: list[Judged]) -> None:
    """The results without a matching finding are exactly those listed with a reason."""
    missed = {(e.judged.nvidia.report, e.judged.nvidia.index, e.topic) for e in expected(judged) if e.severity is None}
    assert missed == set(goals.MISSES)


def test_no_limiter_stands_where_nvidias_rules_see_nothing(judged: list[Judged]) -> None:
    """Where a rule said OK, or only mentioned another kernel, at most 5 % of the cases have a limiter of its topic."""
    cases = list(silent(judged))
    unexplained = [
        key
        for case in cases
        if case.false
        and (key := (case.judged.nvidia.report, case.judged.nvidia.index, case.topic)) not in goals.RIGHT_LIMITERS
    ]
    assert len(cases) >= 300
    assert len(unexplained) / len(cases) <= goals.FALSE_LIMITERS, unexplained


def test_few_findings_a_kernel(judged: list[Judged]) -> None:
    """No kernel has more than six findings, notes not counted."""
    for one in judged:
        more = [key for key, severity in one.severities.items() if severity != "note"]
        assert len(more) <= goals.FINDINGS_A_KERNEL, (one.nvidia.report, one.nvidia.index, more)


def test_first_moves_hold_a_number_of_the_kernel(judged: list[Judged]) -> None:
    """60 % of the first moves contain a number from the evidence of their finding."""
    assert part(says_number(one.analysis) for one in timed(judged)) >= goals.MOVES_WITH_EVIDENCE


def test_collecting_more_is_seldom_the_first_move(judged: list[Judged]) -> None:
    """At most 15 % of the first moves ask for more counters."""
    assert part(says_collect(one.analysis) for one in timed(judged)) <= goals.COLLECT_FIRST


def test_unknown_is_a_last_resort(judged: list[Judged]) -> None:
    """At most 10 % of the kernels have an unknown verdict."""
    assert part(one.analysis.verdict.bound == "unknown" for one in timed(judged)) <= goals.UNKNOWN


def test_the_first_rank_takes_time(by_report: list[tuple]) -> None:
    """In reports with several kernels, rank 1 has a tenth of the time, with exceptions in at most a tenth of them."""
    ranks = first_ranks(by_report)
    low = [rank for rank in ranks if (rank.time_share or 0.0) < goals.FIRST_RANK_TIME]
    assert len(ranks) >= 15
    assert len(low) / len(ranks) <= goals.RANK_EXCEPTIONS, low


def test_the_document_has_these_figures(by_report: list[tuple]) -> None:
    """The tables about findings in docs/explanation/accuracy.md are what the rules give today."""
    said = markdown(by_report)
    assert said in DOC.read_text(encoding="utf-8"), "run: python tests/corpus/nvidia_findings.py --write"


def test_nvidias_marked_lines_are_among_our_hottest(judged: list[Judged]) -> None:
    """The lines and instructions that NVIDIA marks are among our top three of the same topic."""
    places = [place for one in judged for place in marked(one.nvidia, one.analysis.kernel)]
    assert len(places) >= 50
    assert part(place.hit for place in places) >= goals.MARKED_PLACES, [place for place in places if not place.hit]


# The comparison itself, on records made by hand.


class _Finding(Struct, frozen=True):
    id: str
    severity: str
    move: str = ""
    evidence: tuple = ()


def _kernel(index: int = 0, *results: NvidiaResult, **known: object) -> NvidiaKernel:
    sections = frozenset(result.section for result in results) | {"LaunchStats", "WarpStateStats", "Occupancy"}
    return NvidiaKernel("r.ncu-rep", index, "f", sections, results, **known)


def _result(identifier: str, title: str = "", *, kind: str = "optimization", pct: float | None = None) -> NvidiaResult:
    section = {"CPIStall": "WarpStateStats", "Occupancy": "Occupancy"}.get(identifier, "LaunchStats")
    return NvidiaResult(identifier, section, title, "", kind, pct, None if pct is None else "global")


def _judged(nvidia: NvidiaKernel, *findings: _Finding, advice: tuple[str, ...] = ()) -> Judged:
    kernel = Kernel(digest="", source="", index=nvidia.index, name="f", function_name="f", status="ok")
    return Judged(nvidia, SimpleNamespace(kernel=kernel, findings=findings, verdict=SimpleNamespace(advice=advice)))


@pytest.mark.parametrize(
    ("title", "topic"),
    [
        ("Long Scoreboard Stalls", "stall_long_scoreboard"),
        ("Long Scoreboard", "stall_long_scoreboard"),
        ("imc_miss", "stall_imc_miss"),
        ("No Instructions Stalls", "stall_no_instruction"),
        ("Lg Throttle Stalls", "stall_lg_throttle"),
    ],
)
def test_every_spelling_of_a_stall_is_its_own_topic(title: str, topic: str) -> None:
    """Titles of all versions give the reason that our ID names."""
    assert stall_id(title) == topic


@for_all(
    "instruction, access_type, side",
    [
        ("@!P3 LDG.E.SYS R11, [R4+-0x4]", 0, LOAD),
        ("     LDGSTS.E.BYPASS.128 [R5], [R2.64]", 6, LOAD),
        ("     STG.E.128 [R2.64], R4", 4, STORE),
        ("???", 2, LOAD),
        ("???", 4, STORE),
        ("???", 6, LOAD),
        ("     ATOMG.E.ADD PT, R2, [R2.64], R5", 0, None),
    ],
)
def test_an_instruction_loads_or_stores(instruction: str, access_type: int, side: str | None) -> None:
    """The opcode tells loads from stores; without SASS the type of access does, where copies to shared memory load."""
    assert _side(instruction, access_type) == side


def test_a_tail_counts_only_where_the_sms_are_idle() -> None:
    """NVIDIA's computed tail counts from a measured idle share of 10 %, and not below or without a measurement."""
    tail = _result("LaunchConfiguration", "Tail Effect", pct=50.0)
    assert choice_of(tail, _kernel(idle_share=0.10)) == "tail_wave"
    assert not isinstance(choice_of(tail, _kernel(idle_share=0.09)), str)
    assert not isinstance(choice_of(tail, _kernel()), str)


def test_fp64_is_slow_only_on_chips_where_it_is() -> None:
    """NVIDIA also mentions fp64 at half the rate of fp32, which is not our topic."""
    said = "The ratio of peak float (fp32) to double (fp64) performance on this device is {}:1."
    slow = replace(_result("SOLFPRoofline", "FP64/32 Utilization"), message=said.format(64))
    assert choice_of(slow, _kernel()) == "slow_fp64"
    for other in (said.format(2), "See whether using fused instructions can benefit this kernel."):
        assert not isinstance(choice_of(replace(slow, message=other), _kernel()), str)


def test_a_result_counts_from_twenty_per_cent_and_needs_its_very_topic() -> None:
    """Results with an estimate below 20 % or none, and excluded rules, do not count; another topic is not a hit."""
    results = (
        _result("CPIStall", "Wait Stalls", pct=20.0),
        _result("CPIStall", "Lg Throttle Stalls", pct=19.9),
        _result("LaunchConfiguration", "Small Grid", kind="warning"),
        _result("IssueSlotUtilization", pct=60.0),
    )
    for finding, severity in (("stall_wait", "note"), ("stall_lg_throttle", None)):
        (only,) = expected([_judged(_kernel(0, *results), _Finding(finding, "note"))])
        assert (only.topic, only.severity) == ("stall_wait", severity)


def test_a_limiter_is_false_where_the_rule_spoke_of_another_kernel_only() -> None:
    """The kernel mentioned by the rule is not a case; for the others a note is right and a limiter is false."""
    spoken = _judged(_kernel(0, _result("LaunchConfiguration", "Small Grid")), _Finding("small_grid", "limiter"))
    for severity, false in (("limiter", True), ("contributes", False), ("note", False)):
        (case,) = silent([spoken, _judged(_kernel(1), _Finding("small_grid", severity))])
        assert (case.judged.nvidia.index, case.topic, case.why, case.false) == (1, "small_grid", "elsewhere", false)


def test_a_rule_that_had_no_chance_is_not_silent() -> None:
    """A kernel without the rule's section, or on which the rule failed, is not a case."""
    spoken = _judged(_kernel(0, _result("CPIStall", "Wait Stalls")))
    other = replace(_kernel(1), sections=frozenset({"LaunchStats"}))
    failed = _kernel(2, _result("CPIStall", kind="error"))
    assert list(silent([spoken, _judged(other), _judged(failed)])) == []


def test_an_explicit_ok_is_a_case() -> None:
    """If the rule says that no limit affects the occupancy, a limiter there is false."""
    fine = _kernel(0, _result("Occupancy", "Occupancy Limiters", kind="ok"))
    (case,) = silent([_judged(fine, _Finding("low_occupancy", "limiter"))])
    assert (case.topic, case.why, case.false) == ("low_occupancy", "ok", True)


@for_all(
    "move, value, holds",
    [
        ("only 25 % of each sector is used", 0.25, True),
        ("only 25 % of each sector is used", 0.256, False),
        ("only 25.6 % of each sector is used", 0.2564, True),
        ("move 3.94 TB less", 3.9412e12, True),
        ("blocks of 9 threads", 9, True),
        ("blocks of few threads", 9, False),
        ("take fp32 instead of fp64", 32, False),
        ("1,240 sectors", 1240.2, True),
    ],
)
def test_a_move_holds_a_number_as_it_is_written(move: str, value: float, holds: bool) -> None:  # noqa: FBT001
    """A value matches its text despite per cents, SI prefixes and rounding; a digit in a name is not a number."""
    assert holds_evidence(move, [value]) is holds


def test_a_first_move_is_held_against_its_own_finding() -> None:
    """A number from another finding, or from a note, does not make a first move concrete."""
    nine, four = SimpleNamespace(value=9.0), SimpleNamespace(value=4.0)
    own = _Finding("partial_warps", "limiter", "blocks of 9 threads: take 32", (nine,))
    other = _Finding("low_occupancy", "contributes", "registers allow 4 blocks", (four,))
    assert says_number(_judged(_kernel(), own, other, advice=(own.move, other.move)).analysis)
    assert says_number(_judged(_kernel(), own, other, advice=(other.move,)).analysis)
    assert not says_number(_judged(_kernel(), own, other, advice=("take 4 blocks",)).analysis)
    assert not says_number(_judged(_kernel(), replace(own, severity="note"), advice=(own.move,)).analysis)
    assert not says_collect(_judged(_kernel(), own, advice=(own.move,)).analysis)
    assert says_collect(_judged(_kernel(), advice=("collect what this report lacks",)).analysis)


class _Spot(Struct, frozen=True):
    by: str
    measures: dict[str, float]
    pc: int | None = None
    file: str | None = None
    line: int | None = None


def _spots(name: str, **by_pc: float) -> SimpleNamespace:
    return SimpleNamespace(hotspots=tuple(_Spot("sass", {name: v}, pc=int(pc[1:])) for pc, v in by_pc.items()))


def test_marked_stalls_must_be_among_our_top_three() -> None:
    """The three strongest marked instructions must be among our three hottest."""
    markers = tuple(
        Marker("CPIStall", f"This line is responsible for {share}% of all warp stalls.", pc=pc)
        for pc, share in ((16, 12.0), (32, 40.0), (48, 20.0), (64, 11.0))
    )
    spots = _spots("samples", p32=400, p48=200, p80=130, p16=120)
    hits = {place.what: place.hit for place in marked(_kernel(markers=markers), spots)}
    assert hits == {"0x20": True, "0x30": True, "0x10": False}
    tied = (*markers, Marker("CPIStall", "This line is responsible for 12.0% of all warp stalls.", pc=96))
    assert {place.what for place in marked(_kernel(markers=tied), spots)} == {"0x20", "0x30"}


def test_our_top_three_of_uncoalesced_places_must_be_marked() -> None:
    """If more than three places are marked without a weight, our three must be among them."""
    markers = tuple(Marker("UncoalescedGlobalAccess", "75.00% excessive.", pc=pc) for pc in (16, 32, 48, 64))
    spots = _spots("load_excess_sectors", p16=9, p32=8, p80=7, p48=6)
    hits = {place.what: place.hit for place in marked(_kernel(markers=markers), spots)}
    assert hits == {"0x10": True, "0x20": True, "0x50": False}
    assert not any(place.hit for place in marked(_kernel(markers=markers), SimpleNamespace(hotspots=())))


def test_a_marked_line_is_of_the_file_of_its_instructions() -> None:
    """Lines of uncoalesced accesses name the file looked at last, so the marked instructions decide."""
    markers = (
        Marker("UncoalescedGlobalAccess", "50.00% excessive.", pc=16, source=("/a/k.cu", 9)),
        Marker("UncoalescedGlobalAccess", "50.00% excessive.", file="/b/mma.hpp", line=9),
    )
    spot = _Spot("line", {"load_excess_sectors": 5.0}, file="k.cu", line=9)
    places = marked(_kernel(markers=markers), SimpleNamespace(hotspots=(spot,)))
    assert [(place.what, place.hit) for place in places if place.by == "line"] == [("k.cu:9", True)]


def test_marked_lines_are_compared_by_file_name_and_line() -> None:
    """Reports have paths of two machines, so only file name and line are compared."""
    marker = Marker("UncoalescedGlobalAccess", "50.00% excessive.", file="/a/k.cu", line=9)
    for file, hit in (("k.cu", True), ("/b/k.cu", True), ("/a/other.cu", False)):
        spot = _Spot("line", {"store_excess_sectors": 5.0}, file=file, line=9)
        (place,) = marked(_kernel(markers=(marker,)), SimpleNamespace(hotspots=(spot,)))
        assert (place.by, place.hit) == ("line", hit)
