"""Instructions are read only once, if possible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rooflens.ingest.metrics import code
from rooflens.ingest.reports import report
from rooflens.ingest.reports.read import ReadOptions, read_report


@pytest.mark.corpus
def test_what_few_kernels_store_by_instruction_is_read_once(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For few kernels lines are read together with the amounts, with the same result as reading them later."""
    path, gathered = corpus / "nsight-training__manual_nvtx.ncu-rep", []
    gather = code.gather

    def counted(*arguments: Any) -> code.Instructions | None:
        found = gather(*arguments)
        gathered.append(found is not None)
        return found

    monkeypatch.setattr(code, "gather", counted)
    at_once = read_report(path, "one", ReadOptions(texts=False))
    assert any(spot.line for kernel in at_once.kernels for spot in kernel.hotspots)
    assert sum(gathered) == sum(bool(kernel.hotspots) for kernel in at_once.kernels)
    codes = report._Codes
    monkeypatch.setattr(report, "_Codes", lambda **_: codes(are_few=False))
    assert read_report(path, "one", ReadOptions(texts=False)).kernels == at_once.kernels
