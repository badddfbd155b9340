"""Hold that reports which two processes share are read as one process reads them, disassembled by generation."""

from __future__ import annotations

import gzip
import shutil
from typing import TYPE_CHECKING, Any, Self

import pytest

from rooflens.errors import InputError
from rooflens.ingest.loading import sharing
from rooflens.ingest.loading.tasks import read_reports
from rooflens.ingest.reports import read
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.report import ReadOptions, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rooflens.ingest.reports.pool import Job, Outcome

AMPERE, TURING = ("speedy_scan__profile", "nsight-training__manual_nvtx"), ("CudaCode__naive",)

pytestmark = pytest.mark.corpus


class OneProcess:
    """What stands in for two processes: all is done here, in order."""

    def __init__(self, function: Callable[[Any], Any], items: Iterable[Any]) -> None:
        self._function = function
        self._items = list(items)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def results(self) -> Iterator[tuple[Any, Any]]:
        """Yield every item with its result."""
        return ((item, self._function(item)) for item in self._items)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep no texts, and start no process."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setattr(sharing, "Shared", OneProcess)


@pytest.fixture
def jobs(corpus: Path, tmp_path: Path) -> Sequence[Job]:
    """Return reports of two generations in turn, one of them compressed as well."""
    for number, name in enumerate((AMPERE[0], *TURING, AMPERE[1])):
        shutil.copy(corpus / f"{name}.ncu-rep", tmp_path / f"{number}-{name}.ncu-rep")
    packed = tmp_path / "packed.ncu-rep.gz"
    packed.write_bytes(gzip.compress((corpus / f"{TURING[0]}.ncu-rep").read_bytes(), 1))
    return find_inputs([str(tmp_path)]).jobs


def _reports(outcomes: Iterable[Outcome]) -> dict[str, Report]:
    return {one.job.source: one.result for one in outcomes if isinstance(one.result, Report)}


def _generation(path: Path) -> str:
    return "ampere" if any(name in path.name for name in AMPERE) else "turing"


def test_reports_of_a_generation_are_disassembled_together(
    jobs: Sequence[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each report is what it is alone, whatever its turn; one that is unpacked for reading gets its text at once."""
    asked: list[Path] = []

    def told(_: object, path: Path, wanted: Mapping[int, Sequence[int]], *__: object, **___: object) -> object:
        asked.append(path)
        return {index: {address: f"INST {address}" for address in addresses} for index, addresses in wanted.items()}

    monkeypatch.setattr(read, "in_child", told)
    alone = _reports(read_reports(jobs, children=1))
    asked.clear()
    shared = _reports(sharing.read_beside(jobs, ReadOptions()))
    assert shared == alone
    assert len(shared) == 4
    assert all(any(spot.sass for kernel in one.kernels for spot in kernel.hotspots) for one in shared.values())
    own = {job.path for job in jobs}
    assert [path in own for path in asked] == [False, True, True, True]
    assert [_generation(path) for path in asked[1:]] == ["ampere", "ampere", "turing"]


def test_a_report_that_cannot_be_disassembled_later_says_so(
    jobs: Sequence[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its kernels are all there without text, and a note says what is missing and why."""

    def refused(*_: object, **__: object) -> object:
        raise InputError("no such file")

    monkeypatch.setattr(read, "in_child", refused)
    shared = _reports(sharing.read_beside(jobs, ReadOptions()))
    assert {one.notes[-1] for one in shared.values()} == {"SASS text is missing: no such file"}
    without = _reports(read_reports(jobs, ReadOptions(texts=False), children=1))
    assert {source: one.kernels for source, one in shared.items()} == {
        source: one.kernels for source, one in without.items()
    }
