from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from support import samples
from support.loops import for_all
from support.pairs import compare

from rooflens.errors import InputError
from rooflens.model.compare.compare import Side, Spread, Timing
from rooflens.model.compare.gate import Gate
from rooflens.model.compare.ladder import Ladder, with_pairs
from rooflens.model.compare.pairing import checked, pair_sides, program_name, refusals, warnings
from rooflens.model.records import Analysis, AnalyzedReport, Run
from rooflens.report.words.change import change_sentence, timing_words, total_sentence


def timed(analysis: Analysis, factor: float) -> Analysis:
    """Make the same kernel take `factor` times as long."""
    duration_ns = (analysis.kernel.duration_ns or 0.0) * factor
    counters = {**analysis.kernel.counters, "duration_ns": duration_ns}
    return replace(analysis, kernel=replace(analysis.kernel, counters=counters))


def side(*factors: float, analyses: list[Analysis] | None = None) -> Side:
    """Make a side with one recording for each factor of time."""
    kernels = analyses or samples.every_verdict()
    return Side("side", tuple(samples.report([timed(a, factor) for a in kernels]) for factor in factors))


def timing(base: tuple[float, ...], head: tuple[float, ...]) -> Timing:
    """Make the timing of two lists of times."""
    return Timing(Spread(base), Spread(head))


def test_times_are_medians_over_recordings() -> None:
    """With three recordings per side, the total is the sum over kernels, with median and range over recordings."""
    found = compare(side(1.0, 1.1, 1.2), side(2.0, 2.2, 2.4))
    whole_ns = sum(a.kernel.duration_ns or 0.0 for a in samples.every_verdict())
    assert found.total.base.median_ns == pytest.approx(1.1 * whole_ns)
    assert (found.total.head.low_ns, found.total.head.high_ns) == pytest.approx((2.0 * whole_ns, 2.4 * whole_ns))
    assert found.total.factor == pytest.approx(0.5)
    assert found.total.outcome() == "slower"
    assert {change.how for change in found.changes} == {"same"}


def fills(analysis: Analysis) -> Analysis:
    """Make a kernel one that only fills inputs."""
    return replace(analysis, role="fill")


def test_kernels_that_fill_inputs_count_in_no_time() -> None:
    """A fill that takes ten times as long makes no program slower, and both sides say that it is left out."""
    fill, *others = samples.every_verdict()
    found = compare(side(1.0, analyses=[fills(fill), *others]), side(1.0, analyses=[fills(timed(fill, 10)), *others]))
    assert found.total.factor == pytest.approx(1.0)
    assert fill.kernel.name not in {change.name for change in found.changes}
    assert "1 launch of the base only fills inputs, and counts in no time" in list(warnings(found))


def test_sides_that_only_fill_inputs_are_not_compared() -> None:
    """The error says which side holds nothing else, and which kernel failed to be profiled; nothing overrides it."""
    fill, other, *_ = samples.every_verdict()
    failed = replace(other, kernel=replace(other.kernel, status="failed"))
    only, whole = side(1.0, analyses=[fills(fill), failed]), side(1.0, analyses=[fills(fill), other])
    cases = ((only, only), "both sides hold"), ((only, whole), "base holds"), ((whole, only), "head holds")
    for sides, said in cases:
        for anyway in (False, True):
            with pytest.raises(InputError, match=f"{said} only kernels that fill inputs; `.*` could not be profiled"):
                checked([compare(*sides)], anyway=anyway, hint="")


@for_all(
    "base, head, outcome",
    [
        ((100, 101, 102), (110, 111, 112), "slower"),
        ((110, 111, 112), (100, 101, 102), "faster"),
        ((100, 101, 102), (102, 111, 112), "same"),  # the ranges touch
        ((100, 101, 102), (103, 103.5, 104), "same"),  # disjoint, but less than 3 %
        ((100,), (200,), "single"),
        ((100, 101), (200,), "single"),
        ((), (200, 201), "unknown"),
    ],
)
def test_a_change_is_more_than_noise(base: tuple[float, ...], head: tuple[float, ...], outcome: str) -> None:
    """A change needs disjoint ranges and medians beyond the threshold; single recordings are never judged."""
    assert timing(base, head).outcome(0.03) == outcome


def test_the_gate_is_right_about_noise() -> None:
    """At 2 % noise and five recordings per side: at most 2 false alarms in 1,000, and 10 % is detected in 99 of 100."""
    source = random.Random(7)  # noqa: S311 - a simulation
    draws = 20_000

    def drawn(centre: float) -> tuple[float, ...]:
        return tuple(source.gauss(centre, 0.02) for _ in range(5))

    alarms = sum(timing(drawn(1), drawn(1)).outcome(0.05) == "slower" for _ in range(draws))
    caught = sum(timing(drawn(1), drawn(1.1)).outcome(0.05) == "slower" for _ in range(draws))
    assert alarms <= 0.002 * draws
    assert caught >= 0.99 * draws


def test_a_fused_kernel_is_told_as_new_and_gone() -> None:
    """A kernel without a partner is listed on its own side, without a time on the other."""
    before = samples.every_verdict()
    fused = replace(before[0], kernel=replace(before[0].kernel, name="fused", function_name="fused"))
    found = compare(side(1.0, analyses=before[:3]), side(1.0, analyses=[fused, before[2]]))
    assert sorted(change.how for change in found.changes) == ["gone", "gone", "new", "same"]
    new = next(change for change in found.changes if change.how == "new")
    assert new.base is None
    assert new.timing.base.median_ns is None
    assert change_sentence(new, found).endswith(": new")


def moved(bytes_factor: float, time_factor: float) -> Ladder:
    """Compare a memory-bound kernel with itself, its DRAM bytes and time scaled."""
    before = samples.every_verdict()[0]
    level = before.levels["dram"]
    assert level.amount_bytes is not None
    assert level.intensity_flop_per_byte is not None
    after = replace(
        level,
        amount_bytes=level.amount_bytes * bytes_factor,
        intensity_flop_per_byte=level.intensity_flop_per_byte / bytes_factor,
    )
    changed = timed(replace(before, levels={**before.levels, "dram": after}), time_factor)
    return compare(side(1.0, analyses=[before]), side(1.0, analyses=[changed]))


def test_fewer_bytes_are_why_a_kernel_is_faster() -> None:
    """Half the bytes for the same FLOPs in half the time: the kernel is faster, and the bytes are the named reason."""
    found = moved(0.5, 0.5)
    sentence = change_sentence(found.changes[0], found)
    assert sentence.startswith("2.00x faster (1 run each): 50 % fewer HBM2 bytes, ")
    assert "still memory-bound at HBM2" in sentence
    assert total_sentence(found) == "GPU time 2.00x faster (1 run each)"


def test_two_programs_without_a_common_kernel_are_said_to_be() -> None:
    """No factor is given between the times of different kernels."""
    before = samples.every_verdict()
    fused = replace(before[0], kernel=replace(before[0].kernel, name="fused", function_name="fused"))
    found = compare(side(1.0, analyses=before[1:3]), side(1.0, analyses=[fused]))
    assert total_sentence(found) == "not compared, no kernel is on both sides"
    assert found.speed.factor is None


def test_what_did_not_change_is_said_so() -> None:
    """The same kernel twice is unchanged and has no cause."""
    found = moved(1.0, 1.0)
    sentence = change_sentence(found.changes[0], found)
    assert sentence.startswith("unchanged (1 run each): still memory-bound at HBM2")


def test_noise_is_no_news() -> None:
    """Overlapping ranges count as no change, and the difference of medians is given."""
    assert timing_words(timing((100, 104), (101, 105)), 0.03) == "no change beyond noise (+1.0 %)"
    assert timing_words(timing((1000, 1001), (1003, 1004)), 0.001) == "slower (+0.3 %)"


def named(source: str, **changes: object) -> Run:
    """Make the provenance of a report with that file name."""
    return samples.run(source=source, **changes)


def test_numbered_files_are_recordings_of_one_program() -> None:
    """Files whose names differ only in a final number, with the same launches, are recordings of one program."""
    kernels = tuple(samples.every_verdict())
    base = [AnalyzedReport(named(f"a/gemm_{i}.ncu-rep"), kernels) for i in (1, 2, 3)]
    head = [AnalyzedReport(named(f"b/gemm-{i}.ncu-rep"), kernels) for i in (1, 2)]
    assert [
        len(one.recordings) for pair in pair_sides((base, head), ("a", "b"))[0] for one in (pair.base, pair.head)
    ] == [3, 2]


@for_all(
    "file, program",
    [
        ("gemm_1.ncu-rep", "gemm"),
        ("gemm (2).ncu-rep", "gemm"),
        ("gemm_1.ncu-repz", "gemm"),
        ("app-2026-05-01_12.30.ncu-rep", "app"),
        ("sm_90_app.ncu-rep", "sm_90_app"),
        ("v4_swizzle_D64_causal.ncu-rep", "swizzle_D64_causal"),
        ("silu-2025-04-19-v1.ncu-rep", "silu"),
        ("v3.ncu-rep", "recording"),
        ("7.ncu-rep", "recording"),
        ("2026-05-01.ncu-rep", "recording"),
        ("1" * 200 + "x.ncu-rep", "1" * 200 + "x"),
    ],
)
def test_a_program_is_named_after_its_files(file: str, program: str) -> None:
    """Final numbers and dates are not part of the name, whatever separates them; a long number costs no time."""
    assert program_name(named(f"folder/{file}")) == program


@for_all(
    "before, after, program",
    [
        (("conv/variant1.ncu-rep",), ("conv/variant2.ncu-rep",), "variant1 -> variant2"),
        (("conv/naive.ncu-rep",), ("conv/variant1.ncu-rep",), "naive -> variant1"),
        (("before/gemm.ncu-rep",), ("after/gemm.ncu-rep",), "gemm"),
        (("gemm_tiled.csv",), ("gemm_wide.txt",), "gemm_tiled -> gemm_wide"),
        (("a/gemm_1.ncu-rep", "a/gemm_2.ncu-rep"), ("b/gemm_7.ncu-rep", "b/gemm_8.ncu-rep"), "gemm"),
        (("a/gemm_1.ncu-rep", "a/gemm_2.ncu-rep"), ("b/gemm_7.ncu-rep",), "gemm -> gemm_7"),
    ],
)
def test_a_report_is_called_as_the_user_named_it(before: tuple[str, ...], after: tuple[str, ...], program: str) -> None:
    """A number at the end is that of a run only where a side holds several runs."""
    kernels = tuple(samples.every_verdict())
    base, head = (
        [AnalyzedReport(named(file, digest=f"{file:x<64}"), kernels) for file in side] for side in (before, after)
    )
    assert [one.program for one in pair_sides((base, head), ("a", "b"))[0]] == [program]


def test_more_than_two_reports_are_called_by_what_their_names_share() -> None:
    """Else by their longest kernel; each pair has both names."""
    kernels = tuple(samples.every_verdict())
    for folder, files, program, pair_of in (
        ("x", ("conv_a", "conv_b", "conv_c"), "conv", "conv: a -> c"),
        ("x", ("naive", "tree", "shuffle"), "softmax_warp_forward", "softmax_warp_forward: naive -> shuffle"),
    ):
        reports = [[AnalyzedReport(named(f"{folder}/{file}.txt", digest=f"{file:x<64}"), kernels)] for file in files]
        labels = [file.removeprefix("conv_") for file in files]
        ((found,), _) = pair_sides(reports, labels)
        assert found.program == program
        assert with_pairs(found).pairs[-1].program == pair_of


def launched(name: str, blocks: int, source: str) -> list[AnalyzedReport]:
    """Make a report of one launch, of which neither FLOPs nor instructions were counted."""
    made = samples.analysis(samples.Sample(name, "memory", 1e3, "dram", {}, None))
    made = replace(made, kernel=replace(made.kernel, grid=(blocks, 1, 1), block=(256, 1, 1)), pipes={})
    return [AnalyzedReport(named(source, digest=f"{source:x<64}"), (made,))]


def test_two_named_reports_are_compared_where_nothing_tells() -> None:
    """Fewer threads may each do more: the times are compared, and it is said what is not known.

    Not where the names tell other sizes or other jobs, nor of programs that were only found in two folders.
    """
    blocked = launched("gemm_blocked", 64, "gemm_blocked.csv")

    def between(base: list[AnalyzedReport]) -> Ladder:
        (found,) = pair_sides((base, blocked), ("a", "b"))[0]
        return found

    found = between(launched("gemm_tiled", 1024, "gemm_tiled.csv"))
    assert found.speed.factor == pytest.approx(1.0)
    (change,) = found.changes
    assert change.work is not None
    assert (change.work.same, change.work.assumed) == (None, True)
    told = change_sentence(change, found).partition("; taken for the same work, as named: ")[2]
    assert told == "6.2 % of the threads, and neither FLOPs nor instructions were recorded on both sides"
    assert between(launched("transpose_tiled", 1024, "transpose_tiled.csv")).speed.factor is None
    others = [*launched("gemm_tiled", 1024, "a/gemm_blocked.csv"), *launched("sort", 9, "a/sort.csv")]
    assert between(others).speed.factor is None


def test_no_report_is_lost_where_names_meet() -> None:
    """Different programs with equal file names are distinguished by their folders."""
    one, other = tuple(samples.every_verdict()[:3]), tuple(samples.every_verdict()[3:])
    base = [AnalyzedReport(named("base/a/app.ncu-rep", digest="a"), one)]
    base.append(AnalyzedReport(named("base/b/app.ncu-rep", digest="b"), other))
    head = [AnalyzedReport(named("head/b/app.ncu-rep"), other), AnalyzedReport(named("head/a/app.ncu-rep"), one)]
    assert [pair.program for pair in pair_sides((base, head), ("a", "b"))[0]] == ["a/app", "b/app"]
    again = [
        AnalyzedReport(named("app.ncu-rep", digest=letter * 64), kernels)
        for letter, kernels in (("c", one), ("d", other))
    ]
    assert len(pair_sides((again, again), ("a", "b"))[0]) == 2


def test_recordings_on_different_gpus_are_no_repetition() -> None:
    """A median over two GPUs means nothing, so numbered reports of equal launches on two GPUs are two programs."""
    here = tuple(samples.every_verdict())
    there = tuple(replace(a, kernel=replace(a.kernel, gpu="Tesla T4")) for a in here)
    reports = [
        AnalyzedReport(named(f"a/gemm_{at}.ncu-rep", digest=f"{at}"), ran) for at, ran in enumerate((here, there), 1)
    ]
    assert [pair.program for pair in pair_sides((reports, reports), ("a", "b"))[0]] == ["gemm_1", "gemm_2"]


def test_a_recording_that_lacks_a_launch_does_not_look_faster() -> None:
    """A kernel's time comes from the recordings with all its launches; totals are those of each recording."""
    kernels = samples.every_verdict()
    twice = (*kernels, kernels[0])
    base = Side("base", tuple(samples.report(some) for some in (twice, twice, kernels)))
    found = compare(base, side(1.0, 1.0, analyses=list(twice)))
    (change,) = (change for change in found.changes if change.name == kernels[0].kernel.name)
    each_ns = kernels[0].kernel.duration_ns or 0.0
    assert change.timing.base.times_ns == pytest.approx((2 * each_ns, 2 * each_ns))
    assert len(found.total.base.times_ns) == 3


def test_the_same_report_on_both_sides_is_warned_of() -> None:
    """Comparing a report with itself shows no change, and gives a warning."""
    assert [*warnings(pair(side(1.0), side(1.0)))] == ["1 of the head's reports is among the base's too"]


def test_other_launches_are_another_program() -> None:
    """Numbered files with different kernels, such as cases of a sweep, stay separate and are paired by name."""
    one, other = tuple(samples.every_verdict()[:3]), tuple(samples.every_verdict()[3:])
    base = [AnalyzedReport(named("a/n_128.ncu-rep"), one), AnalyzedReport(named("a/n_256.ncu-rep"), other)]
    head = [AnalyzedReport(named("b/n_128.ncu-rep"), one), AnalyzedReport(named("b/n_512.ncu-rep"), other)]
    pairs, unpaired = pair_sides((base, head), ("a", "b"))
    assert [pair.program for pair in pairs] == ["n_128"]
    assert [one.programs for one in unpaired] == [("n_256",), ("n_512",)]


def test_sides_without_a_common_program_are_refused() -> None:
    """If no program has the same name on both sides, nothing is compared."""
    one, other = tuple(samples.every_verdict()[:3]), tuple(samples.every_verdict()[3:])
    base = [AnalyzedReport(named("a/x.ncu-rep"), one), AnalyzedReport(named("a/y.ncu-rep"), other)]
    head = [AnalyzedReport(named("b/z.ncu-rep"), one), AnalyzedReport(named("b/w.ncu-rep"), other)]
    with pytest.raises(InputError, match="no program in common"):
        pair_sides((base, head), ("a", "b"))


def pair(base: Side, head: Side) -> Ladder:
    """Pair two sides."""
    return compare(base, head, program="program")


def collected(one: Side, **run: object) -> Side:
    """Make a side with the same kernels whose report states other collection settings."""
    return replace(one, reports=tuple(samples.report(report.analyses, **run) for report in one.reports))


def test_what_was_collected_differently_is_refused_or_warned_of() -> None:
    """Synthetic sides, other replay modes or missing times are refused; other clocks, caches or GPUs give a warning."""
    base = side(1.0)
    other = collected(base, digest="b" * 64, synthetic=True, replay_mode="application", cache_control="none")
    first = collected(base, replay_mode="kernel", cache_control="all")
    assert [*refusals(pair(base, base))] == []
    assert [*warnings(pair(base, collected(base, digest="b" * 64)))] == []
    told = " ".join(refusals(pair(first, other)))
    assert "replay modes differ: kernel and application" in told
    assert "the head is synthetic" in told
    assert [*warnings(pair(first, other))] == ["cache control: all and none"]
    untimed = side(1.0, analyses=[replace(a, kernel=replace(a.kernel, counters={})) for a in samples.every_verdict()])
    assert [*refusals(pair(base, untimed))] == ["times were not recorded in the head: no kernel of it has a duration"]


def test_different_gpus_are_compared_by_shares() -> None:
    """Times on different GPUs give a warning."""
    other = side(1.0, analyses=[replace(a, kernel=replace(a.kernel, gpu="Tesla T4")) for a in samples.every_verdict()])
    assert "compare shares of the roofs, not times" in " ".join(warnings(pair(side(1.0), other)))


def test_other_launch_counts_are_compared_by_the_mean_launch() -> None:
    """A kernel launched twice as often, each launch as fast as before, is not slower, though its GPU time doubled."""
    (kernel, *_) = samples.every_verdict()
    found = compare(side(1.0, 1.01, analyses=[kernel]), side(1.0, 1.01, analyses=[kernel, kernel]))
    (change,) = found.changes
    each_ns = kernel.kernel.duration_ns or 0.0
    assert change.timing.factor == pytest.approx(0.5)
    assert change.speed.factor == pytest.approx(1.0)
    assert change.mean_launch.head.times_ns == pytest.approx((each_ns, 1.01 * each_ns))
    assert change_sentence(change, found).startswith("mean launch no change beyond noise (+0.0 %) (1 -> 2 launches): ")
    assert Gate(0.05, per_kernel=True).judge([found]).failures[1:] == []


def test_a_program_that_only_launches_more_is_no_slower() -> None:
    """The headline compares the mean launch, or equal numbers of launches; the total stays as measured."""
    first, second = samples.every_verdict()[:2]
    found = compare(side(1.0, analyses=[first]), side(1.0, analyses=[first, first]))
    assert found.total.factor == pytest.approx(0.5)
    assert total_sentence(found) == "mean launch (1 -> 2) unchanged (1 run each)"
    found = compare(side(1.0, analyses=[first, second]), side(1.0, analyses=[first, first, second]))
    assert found.speed.factor == pytest.approx(1.0)
    assert total_sentence(found) == "GPU time of as many launches (2 -> 3) unchanged (1 run each)"


def test_sides_that_hold_another_version_each_are_paired() -> None:
    """Programs whose names differ only in the version are paired if no program has the same name on both sides."""
    kernels = tuple(samples.every_verdict())
    base = [AnalyzedReport(named("a/v4_gemm.ncu-rep"), kernels), AnalyzedReport(named("a/only.ncu-rep"), kernels)]
    head = [AnalyzedReport(named("b/v5_gemm.ncu-rep"), kernels), AnalyzedReport(named("b/new.ncu-rep"), kernels)]
    pairs, unpaired = pair_sides((base, head), ("a", "b"))
    assert [pair.program for pair in pairs] == ["v4_gemm -> v5_gemm"]
    assert [one.programs for one in unpaired] == [("only",), ("new",)]
