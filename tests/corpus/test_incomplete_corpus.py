"""Cut published reports as a dying profiler does: their whole part is read and equals the original."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from support.damage import block_starts
from support.nvidia_reads import read_with_nvidia

from rooflens.ingest.reports.child import in_child
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.report import ReadOptions
from rooflens.model.keys import bare_name, function_of
from rooflens.model.records import Kernel


@pytest.mark.parametrize(
    ("name", "kept"),
    [("self-join-MiSTIC__profile.ncu-rep", 0.5), ("GPU-MMS__profile.ncu-rep", 0.9), ("sglang__profile.ncu-rep", 0.7)],
)
def test_kernels_before_the_cut_are_those_of_the_whole_report(
    corpus: Path, tmp_path: Path, name: str, kept: float
) -> None:
    """Wherever a report is cut, the kernels before the cut equal the original's in all but their file.

    Hot spots are left out, as their text is requested only for kernels with much of the time.
    NVIDIA's module finds as many kernels if it is given the whole blocks.
    """
    data = (corpus / name).read_bytes()
    end = int(len(data) * kept)
    assert end not in block_starts(data)
    cut = tmp_path / f"{name}.incomplete"
    cut.write_bytes(data[:end])
    whole, part = read_report(corpus / name, "x"), read_report(cut, "x")
    assert 0 < len(part.kernels) < len(whole.kernels)
    assert f"{len(part.kernels)} complete kernel" in part.notes[0]
    for ours, original in zip(part.kernels, whole.kernels, strict=False):
        assert replace(ours, digest=original.digest, hotspots=()) == replace(original, hotspots=())
    shorter = tmp_path / "shorter.ncu-rep"
    shorter.write_bytes(data[: max(start for start in block_starts(data) if start <= end)])
    theirs = in_child(read_with_nvidia, shorter, "x", ReadOptions())
    assert len(theirs.kernels) == len(part.kernels)


def test_names_without_template_arguments_are_those_that_ncu_matches(kernels: list[Kernel]) -> None:
    """The name that hints give to `--kernel` is the base name stored by ncu, for every published kernel."""
    assert len(kernels) > 200
    for kernel in kernels:
        assert function_of(kernel.name) == kernel.function_name
        assert function_of(bare_name(kernel.name)) == kernel.function_name
