"""What `rooflens.open` opens, and what happens to paths that it cannot open."""

from __future__ import annotations

import gzip
import shutil
import warnings
from pathlib import Path

import pytest
from support.packing import pack

import rooflens as rl
from rooflens.errors import InputError, UsageError


@pytest.fixture
def attention(fixtures: Path) -> Path:
    """Return a stored report of four kernels."""
    return fixtures / "synthetic" / "attention.synthetic.ncu-rep"


@pytest.fixture
def sweep(fixtures: Path) -> Path:
    """Return a stored report of one kernel."""
    return fixtures / "synthetic" / "sweep_gemm_bf16_128.synthetic.ncu-rep"


def names(report: rl.Report) -> list[str]:
    """Return the functions of the kernels, in order."""
    return [kernel.function_name for kernel in report]


def test_kernels_are_sorted_by_what_is_at_stake(attention: Path) -> None:
    """That is what the best move wins, else the time above the nearer floor; no kernel here has half of the time."""
    kernels = list(rl.open(attention))
    stakes_ns = []
    for kernel in kernels:
        gain, today = kernel.verdict.gain, kernel.analysis.verdict.today
        floors_ns = [kernel.verdict.limit.floor_ns or 0.0, today.floor_ns if today else 0.0]
        stakes_ns.append((kernel.duration_ns or 0.0) - ((gain.time_after_ns if gain else max(floors_ns)) or 0.0))
    assert stakes_ns == sorted(stakes_ns, reverse=True)
    assert len(kernels) == 4


def test_every_form_of_a_report_opens_alike(attention: Path, sweep: Path, tmp_path: Path) -> None:
    """A file, its compressed forms, a folder and a store give the same kernels with the same keys."""
    (tmp_path / "zipped.ncu-rep.gz").write_bytes(gzip.compress(attention.read_bytes()))
    pack(attention, tmp_path / "packed.ncu-repz")
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(attention, folder)
    rl.ingest_reports([attention, sweep], tmp_path / "store")
    keys = [kernel.key for kernel in rl.open(attention)]
    for place in (tmp_path / "zipped.ncu-rep.gz", tmp_path / "packed.ncu-repz", folder):
        assert [kernel.key for kernel in rl.open(place)] == keys
    stored = rl.open(str(tmp_path / "store"))
    assert {kernel.key for kernel in stored} == {*keys, rl.open(sweep)[0].key}


def test_a_report_of_a_store_and_kernels_of_a_gpu_open(attention: Path, sweep: Path, tmp_path: Path) -> None:
    """`STORE/DIGEST` opens one report, `gpu` selects kernels; both errors name what does not exist."""
    rl.ingest_reports([attention, sweep], tmp_path / "store")
    whole, one = rl.open(tmp_path / "store"), rl.open(sweep)
    digest = one.runs[0].digest
    assert [kernel.key for kernel in rl.open(tmp_path / "store" / digest[:8])] == [one[0].key]
    assert names(rl.open(tmp_path / "store", gpu="h200")) == names(whole)
    with pytest.raises(InputError, match="no kernel ran on a GPU whose name contains `V100`"):
        rl.open(tmp_path / "store", gpu="V100")
    with pytest.raises(InputError, match="no report whose digest starts with `ffffff`"):
        rl.open(tmp_path / "store" / "ffffff")


def test_thresholds_are_those_of_a_file(attention: Path, tmp_path: Path) -> None:
    """A file of thresholds applies to reports and stores alike."""
    (tmp_path / "mine.toml").write_text(
        "[thresholds]\nat_roof_share = 0.95\nat_roof_device_share = 0.95\n", encoding="utf-8"
    )
    rl.ingest_reports(attention, tmp_path / "store")
    usual = [kernel.verdict.at_roof for kernel in rl.open(attention)]
    for place in (attention, tmp_path / "store"):
        judged = rl.open(place, thresholds=tmp_path / "mine.toml")
        assert [kernel.verdict.at_roof for kernel in judged] != usual


def test_an_export_opens(tmp_path: Path) -> None:
    """A CSV export opens as a report, and `gpu` names the GPU that it lacks."""
    (tmp_path / "gemm.csv").write_text(
        '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
        '"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
        '"0","1","a","h","gemm","1","7","(128, 1, 1)","(64, 1, 1)","0","9.0","Command line profiler metrics",'
        '"gpu__time_duration.sum","nsecond","2048"\n',
        encoding="utf-8",
    )
    kernel = rl.open(tmp_path / "gemm.csv", gpu="NVIDIA H200")[0]
    assert (kernel.name, kernel.duration_ns, kernel.gpu) == ("gemm", 2048.0, "NVIDIA H200")
    assert kernel.metric("gpu__time_duration.sum") == 2048.0


def test_a_report_in_a_file_and_in_a_store_counts_once(attention: Path, tmp_path: Path) -> None:
    """A report given as a file and in a store counts once, with a remark."""
    rl.ingest_reports(attention, tmp_path / "store")
    report = rl.open(attention, tmp_path / "store")
    assert len(report) == 4
    assert report.warnings == ("1 report given twice but counted once",)


def test_a_damaged_report_costs_no_other(attention: Path, tmp_path: Path) -> None:
    """For an unreadable report there is a warning, `failures` has its error, and the others are opened."""
    shutil.copy(attention, tmp_path)
    (tmp_path / "bad.ncu-rep").write_bytes(b"NVR\0")
    with pytest.warns(UserWarning, match="1 of 2 reports could not be read"):
        report = rl.open(tmp_path)
    assert len(report) == 4
    ((source, error),) = report.failures
    assert source == str(tmp_path / "bad.ncu-rep")
    assert "1 report unread" in repr(report)
    assert str(error) in report._repr_html_()


def test_what_is_wrong_is_raised_where_nothing_can_be_read(tmp_path: Path) -> None:
    """A single damaged report raises its error, with the hint in the traceback."""
    (tmp_path / "bad.ncu-rep").write_bytes(b"NVR\0")
    with pytest.raises(InputError) as raised:
        rl.open(tmp_path / "bad.ncu-rep")
    assert raised.value.__notes__ == [f"hint: {raised.value.hint}"]


def test_nothing_to_open_is_said(tmp_path: Path) -> None:
    """Opening without a path, or with a missing path, raises a rooflens error."""
    with pytest.raises(UsageError, match="no report given"):
        rl.open()
    with pytest.raises(rl.RooflensError, match="does not exist"):
        rl.open(tmp_path / "nothing.ncu-rep")


def test_kernels_are_chosen_when_opened(attention: Path) -> None:
    """`kernel` accepts one or more patterns, and a kernel's share is of everything opened."""
    whole, some = rl.open(attention), rl.open(attention, kernel=["flash*", "attention_scale*"])
    assert names(some) == ["flash_attention_forward", "attention_scale_softmax"]
    shares = {kernel: kernel.time_share for kernel in whole}
    assert [kernel.time_share for kernel in some] == [shares[kernel] for kernel in some]
    assert sum(kernel.time_share or 0.0 for kernel in whole) == pytest.approx(1.0)


def test_a_name_that_no_kernel_has_raises(attention: Path) -> None:
    """A misspelled name raises an error whose hint has the right name."""
    report = rl.open(attention)
    for ask in (lambda: rl.open(attention, kernel="flash_atention_forward"), lambda: report["flash_atention_forward"]):
        with pytest.raises(InputError) as raised:
            ask()
        assert "flash_attention_forward" in raised.value.hint


def test_reading_tells_nothing_twice(attention: Path) -> None:
    """Opening a sound report gives no warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rl.open(attention).warnings == ()


@pytest.mark.parametrize("given", ["", None, 5, b"report.ncu-rep"])
def test_what_is_no_path_is_told_so(given: object, tmp_path: Path) -> None:
    """An empty text does not open the current folder; anything but a path is refused with a clear error."""
    for ask in (rl.open, lambda path: rl.ingest_reports([path], tmp_path / "store")):
        with pytest.raises(UsageError, match=r"one of the paths is empty|is not a path"):
            ask(given)  # type: ignore[arg-type]
