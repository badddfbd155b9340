"""The ladder of a program: what each version is compared with, and which is the fastest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from support import samples

from rooflens.errors import InputError
from rooflens.model.compare.compare import Side
from rooflens.model.compare.ladder import Ladder, ladder
from rooflens.model.compare.pairing import checked
from rooflens.model.records import Analysis, AnalyzedReport
from rooflens.report.document import spans
from rooflens.report.words.ladder import (
    headline,
    kernel_cells,
    kernel_title,
    ladder_rows,
    ladder_warnings,
    subject,
    try_next,
)

GPU = "NVIDIA A100-SXM4-40GB"


def kernel(time_us: float, name: str = "gemm", *, flop: float = 1e9, gpu: str = GPU, blocks: int = 1024) -> Analysis:
    """Make a launch."""
    made = samples.analysis(samples.Sample(name, "memory", round(time_us), "dram", {"dram": 1e8}, {"fp32": flop}))
    return replace(made, kernel=replace(made.kernel, gpu=gpu, grid=(blocks, 1, 1)))


def times_us(made: Ladder) -> list[object]:
    """List the time of each version in microseconds."""
    return [rung.time.median_ns and pytest.approx(rung.time.median_ns / 1e3) for rung in made.rungs]


def climbed(*versions: Sequence[Analysis]) -> Ladder:
    """Compare versions of one recording each."""
    made = [
        Side(f"v{i}", (AnalyzedReport(samples.run(digest=f"{i:064d}"), tuple(analyses)),))
        for i, analyses in enumerate(versions)
    ]
    return ladder("app", made)


def test_each_version_is_set_against_the_first_and_the_one_before() -> None:
    """Factors are of one launch; the fastest version is marked, and only it has a next step."""
    made = climbed([kernel(8e6)], [kernel(2e6)], [kernel(4e6)])
    assert [rung.to_first and rung.to_first.factor for rung in made.rungs] == [None, pytest.approx(4), pytest.approx(2)]
    assert [rung.to_previous and rung.to_previous.factor for rung in made.rungs] == [
        None,
        pytest.approx(4),
        pytest.approx(0.5),
    ]
    assert [rung.is_fastest for rung in made.rungs] == [False, True, False]
    assert headline(made) == "v1 is the fastest of 3: 2.00 s, 4.00x faster than v0"
    assert [row.marked for row in ladder_rows(made.rungs)] == ["v0", "v1 (fastest)", "v2"]
    assert try_next(made).startswith("Next, from v1: ")


def test_versions_as_fast_as_the_fastest_are_named() -> None:
    """Half a per cent makes no version the winner: a change below the threshold is none, wherever it stands."""
    made = climbed([kernel(8e6)], [kernel(2.01e6)], [kernel(2e6)])
    assert headline(made) == "v1 and v2 are as fast: 2.00 s, 4.00x faster than v0"
    assert [row.marked for row in ladder_rows(made.rungs)] == ["v0", "v1", "v2"]
    assert [row.changed for row in ladder_rows(made.rungs)][2] == "unchanged"


def test_a_slower_version_is_called_slower_and_equal_ones_no_winner() -> None:
    """No factor below one stands beside a version, and where all are as fast none is the fastest."""
    made = climbed([kernel(1e6)], [kernel(2e6)])
    assert headline(made) == "v0 is the fastest of 2: 1.00 s; v1 is 2.00x slower"
    assert [row.against_first for row in ladder_rows(made.rungs)] == ["-", "2.00x slower"]
    even = climbed([kernel(2e6)], [kernel(2.01e6)], [kernel(2.02e6)])
    assert headline(even) == "3 versions, no difference: 2.00 s"
    assert [(row.marked, row.against_first) for row in ladder_rows(even.rungs)] == [
        ("v0", "-"),
        ("v1", "as fast"),
        ("v2", "as fast"),
    ]


def test_a_row_of_a_kernel_tells_only_what_is_compared() -> None:
    """A size in between is neither drawn nor counted, and a kernel that took another's place has both names."""
    made = climbed(
        [kernel(4e6, "sgemm_128")], [kernel(9e7, "sgemm_128", flop=1e8, blocks=9)], [kernel(5e6, "hgemm_64")]
    )
    (row,) = made.kernels
    assert kernel_cells(row)[:5] == ("2", "4.00 s", "5.00 s", "1.25x slower", "\u2587 \u2588")
    names = {"sgemm_128": "sgemm_128", "hgemm_64": "hgemm_64"}
    assert "".join(one.text for one in spans(kernel_title(row, names))) == "sgemm_128 -> hgemm_64"


def test_a_kernel_that_changes_its_name_is_named_in_each_version() -> None:
    """The subject names the kernel of each version by the part of the name that differs."""
    made = climbed(
        [kernel(8e6, "gemm<64>")], [kernel(4e6, "gemm<64>")], [kernel(2e6, "gemm<128>")], [kernel(1e6, "mm")]
    )
    assert subject(made) == "times: gemm<64> (v0 to v1), gemm<128> (v2), mm (v3)"


def test_more_launches_are_no_slower_version() -> None:
    """A kernel launched twice, each time as fast, is as fast as before: mean launches are compared, as stated."""
    made = climbed([kernel(1e6)], [kernel(1e6), kernel(1e6)], [kernel(5e5)])
    assert times_us(made) == [1e6, 1e6, 5e5]
    assert subject(made) == "times: mean launch of gemm"


def test_a_version_that_did_other_work_is_not_compared() -> None:
    """A smaller problem that takes less time is not faster; the next version is compared with the version before it."""
    made = climbed([kernel(4e6)], [kernel(1e6, flop=1e8, blocks=100)], [kernel(2e6)])
    assert [rung.apart for rung in made.rungs] == ["", "work", ""]
    assert [rung.to_first is None for rung in made.rungs] == [True, True, False]
    assert [row.changed for row in ladder_rows(made.rungs)] == [
        "",
        "not compared, other work: 100 MFLOP, not 1.00 GFLOP; 100 MFLOP/s against 250 MFLOP/s (v0)",
        "2.00x faster than v0: no counter says why",
    ]
    assert made.fastest is made.rungs[2]


def test_a_version_on_another_gpu_is_not_compared() -> None:
    """Another GPU's time says nothing about the code."""
    made = climbed([kernel(4e6)], [kernel(3e6)], [kernel(1e6, gpu="NVIDIA H200")])
    assert [rung.apart for rung in made.rungs] == ["", "", "GPU"]
    assert made.fastest is made.rungs[1]
    assert ladder_rows(made.rungs)[2].changed == "not compared, ran on NVIDIA H200"


def test_a_renamed_kernel_goes_on_and_a_missing_one_has_no_time() -> None:
    """The ladder follows the longest kernel by its launches, whatever its name, and a version may lack it."""
    other = kernel(1e5, "copy")
    made = climbed(
        [kernel(4e6), other], [kernel(2e6, "gemm_tiled"), other], [other], [kernel(1e6, "gemm_tiled"), other]
    )
    assert times_us(made) == [4e6, 2e6, None, 1e6]
    assert [rung.previous for rung in made.rungs] == [None, 0, None, 1]
    assert ladder_rows(made.rungs)[2].changed == "no time"


def test_a_version_without_a_time_is_a_rung_without_one() -> None:
    """The others are compared as before, and the version is named; of two sides both need a time."""
    timeless = kernel(1e6)
    timeless = replace(timeless, kernel=replace(timeless.kernel, counters={}))
    (made,) = checked([climbed([kernel(4e6)], [timeless], [kernel(2e6)])], anyway=False, hint="")
    assert headline(made) == "v2 is the fastest of 2: 2.00 s, 2.00x faster than v0"
    assert [(row.time, row.changed) for row in ladder_rows(made.rungs)][1] == ("-", "no time")
    assert any(line.startswith("v1: times were not recorded") for line in ladder_warnings(made))
    with pytest.raises(InputError, match="times were not recorded in the head"):
        checked([climbed([kernel(4e6)], [timeless])], anyway=False, hint="")


def test_a_program_without_a_main_kernel_is_followed_whole() -> None:
    """If no kernel takes half of the time, all are counted, and a step names the kernel that changed most."""
    names = ("a", "b", "c", "d")
    made = climbed(
        [kernel(1e6, name) for name in names],
        [kernel(1e6 if name != "c" else 5e5, name, flop=1e9 if name != "c" else 9.2e8) for name in names],
        [kernel(1e6 if name != "c" else 5e5, name) for name in names] + [kernel(1e6, "a")],
    )
    assert made.followed is None
    assert times_us(made) == [4e6, 3.5e6, 3.5e6]
    assert ladder_rows(made.rungs)[1].changed == "1.14x faster: c: 8.0 % fewer FLOPs"
    assert subject(made) == "times of all kernels, at one number of launches"
