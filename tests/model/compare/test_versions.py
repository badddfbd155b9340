from __future__ import annotations

import pytest
from msgspec.structs import replace
from support import samples

from rooflens.errors import InputError
from rooflens.model.compare.versions import MOST_SIDES, ladders_of, pair_versions, report_labels
from rooflens.model.records import AnalyzedReport
from rooflens.writing.naming import default_title

RUN = samples.report([]).run


def labels(*sources: str, times: tuple[int | None, ...] = ()) -> list[str]:
    """Label reports of these paths."""
    made = times or (None,) * len(sources)
    runs = [
        replace(RUN, digest=f"d{i}", source=source, created_unix_s=time)
        for i, (source, time) in enumerate(zip(sources, made, strict=True))
    ]
    return list(report_labels(runs).values())


def test_labels_are_what_differs_in_the_names() -> None:
    """Words with which all names begin or end are cut."""
    assert labels("a/v4_swizzle_D64.ncu-rep", "a/v5_swizzle_D64.ncu-rep") == ["v4", "v5"]
    assert labels("profile4.out.ncu-rep", "profileHIGGS.out.ncu-rep") == ["profile4", "profileHIGGS"]
    assert labels("silu-2025-04-19-v1.ncu-rep", "silu-2025-04-21-v3.ncu-repz") == ["19-v1", "21-v3"]


def test_a_label_is_never_empty_and_never_that_of_another() -> None:
    """A name that others begin with stays whole, equal file names get their folder, equal paths a number."""
    assert labels("profile.ncu-rep", "profile_v2.ncu-rep") == ["profile", "v2"]
    assert labels("x/a/profile.ncu-rep", "x/b/profile.ncu-rep") == ["a", "b"]
    assert labels("profile.ncu-rep", "profile.ncu-rep") == ["profile (1)", "profile (2)"]
    assert labels("attention.ncu-rep", "gemm.ncu-rep") == ["attention", "gemm"]
    assert labels("only.ncu-rep") == ["only"]
    assert labels() == []


def test_reports_stand_in_the_order_of_their_recording() -> None:
    """Reports without a time come last, sorted by name with v2 before v10."""
    assert labels("a.ncu-rep", "b.ncu-rep", "c.ncu-rep", times=(20, 10, None)) == ["b", "a", "c"]
    assert labels("k3_16.ncu-rep", "k4.ncu-rep", "kb.ncu-rep", "kc.ncu-rep", times=(20, 10, 40, 30)) == [
        "k4",
        "k3_16",
        "kc",
        "kb",
    ]


def test_numbers_of_versions_go_before_times() -> None:
    """A version recorded again keeps its place; a version without a number is first, or last by its time."""
    assert labels("v1.ncu-rep", "v10.ncu-rep", "v9.ncu-rep", times=(20, 10, 30)) == ["v1", "v9", "v10"]
    assert labels("naive.ncu-rep", "variant1.ncu-rep", "variant2.ncu-rep", times=(15, 20, 10)) == [
        "naive",
        "variant1",
        "variant2",
    ]
    assert labels("final.ncu-rep", "v1.ncu-rep", "v2.ncu-rep", times=(30, 20, 10)) == ["v1", "v2", "final"]


def test_an_order_that_no_folder_has_is_the_users() -> None:
    """Files without numbers keep the order in which they were named; one of names, in any locale, is a shell's."""
    assert labels("slow.ncu-rep", "fast.ncu-rep", times=(20, 10)) == ["slow", "fast"]
    assert labels("v3.ncu-rep", "v1.ncu-rep", "v2.ncu-rep") == ["v1", "v2", "v3"]
    assert labels("old/k.ncu-rep", "new/k.ncu-rep") == ["old", "new"]
    assert labels("B.ncu-rep", "a.ncu-rep", times=(20, 10)) == ["a", "B"]
    assert labels("a.ncu-rep", "B.ncu-rep", times=(20, 10)) == ["B", "a"]
    assert found(version("gemm_tiled"), version("gemm_naive")) == [["tiled", "naive"]]


def test_a_page_is_named_after_its_reports_in_that_order() -> None:
    """Even if a folder or shell lists v10 before v2, the page's name begins with v2."""
    runs = [replace(RUN, digest=name, source=f"x/{name}.ncu-rep", created_unix_s=None) for name in ("v1", "v10", "v2")]
    assert default_title(runs) == "v1, v2, v10"


def version(
    file: str, name: str = "gemm", *, flop: float = 1e9, gpu: str = "Tesla T4", **counters: float
) -> AnalyzedReport:
    """Make a report of one kernel in 1 ms."""
    (work,) = (samples.analysis(samples.Sample(name, "memory", 1_000, "dram", {"dram": 1e8}, {"fp32": flop})),)
    kernel = replace(work.kernel, gpu=gpu, counters={**work.kernel.counters, **counters}, digest=file)
    return AnalyzedReport(replace(RUN, source=f"runs/{file}.ncu-rep", digest=file), (replace(work, kernel=kernel),))


def found(*reports: AnalyzedReport) -> list[list[str]]:
    """Return the labels of the versions of each program."""
    return [list(one.labels) for one in ladders_of(reports)]


def test_versions_are_found_by_file_name_kernel_or_work() -> None:
    """Reports belong together by file name, longest kernel, or equal work in one folder; others stay separate."""
    assert found(version("gemm_v1", "other", flop=9e9), version("gemm_v2"), version("gemm_v3")) == [["v1", "v2", "v3"]]
    assert found(version("fft", "fft", flop=3e9), version("naive"), version("tiled")) == [["naive", "tiled"]]
    assert found(version("naive", "slow"), version("tiled", "fast")) == [["naive", "tiled"]]
    assert found(version("a", "slow", flop=1e9), version("b", "fast", flop=2e9)) == []


def test_sizes_of_one_program_are_rungs_of_it() -> None:
    """A program at several sizes is one ladder, whose rungs are not compared with each other."""
    sizes = [
        replace(one, analyses=tuple(replace(a, kernel=replace(a.kernel, grid=(n, 1, 1))) for a in one.analyses))
        for n, one in ((n, version(f"gemm_{n}", flop=n * 1e9)) for n in (1, 2, 4))
    ]
    assert found(*sizes) == [["1", "2", "4"]]


def test_recordings_of_the_same_code_are_one_version() -> None:
    """Recordings share registers and instructions; another build under a numbered name is another version."""
    same, again = (version(f"gemm_v1_{i}", registers_per_thread=64) for i in (1, 2))
    other = version("gemm_v1_3", registers_per_thread=80)
    (made,) = ladders_of([same, again, other])
    assert [len(rung.side.reports) for rung in made.rungs] == [2, 1]


def test_a_version_on_another_gpu_belongs_to_the_others_it_continues() -> None:
    """One of several versions may have run elsewhere; two GPUs with one version each are not versions."""
    elsewhere = version("gemm_v3", gpu="Tesla V100")
    assert found(version("gemm_v1"), version("gemm_v2"), elsewhere) == [["v1", "v2", "v3"]]
    assert found(version("gemm_v1"), elsewhere) == []


def test_what_is_no_version_is_named() -> None:
    """Other reports in the folder are left out and named; of too many versions the first are kept."""
    ladders, unpaired = pair_versions([version("gemm_v1"), version("gemm_v2"), version("fft", "fft", flop=3e9)], "runs")
    assert [one.labels for one in ladders] == [("v1", "v2")]
    assert [one.words for one in unpaired] == ["only one report has: fft.ncu-rep"]
    with pytest.raises(InputError, match="holds no program in two versions"):
        pair_versions([version("gemm_v1"), version("fft", "fft", flop=3e9)], "runs")
    with pytest.raises(InputError, match="is one recording") as refused:
        pair_versions([version("gemm_v1")], "gemm_v1.ncu-rep")
    assert "rooflens compare BASE HEAD" in refused.value.hint
    many = [version(f"gemm_v{i}", registers_per_thread=i) for i in range(1, MOST_SIDES + 2)]
    assert pair_versions(many, "runs")[0][0].labels[0] == "v2"
