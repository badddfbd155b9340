"""All tests here read the published reports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from oracle_rows import Row, read_folder
from oracles import compare

from rooflens.analyzing import analyze_paths
from rooflens.ingest.load import Loaded
from rooflens.model.analyze import analyze
from rooflens.model.records import Analysis, AnalyzedReport, Kernel


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker(pytest.mark.corpus)


@pytest.fixture(scope="session")
def kernels(loaded: Loaded) -> list[Kernel]:
    """Return every kernel of the corpus."""
    return [kernel for _, kernels in loaded.reports for kernel in kernels]


@pytest.fixture(scope="session")
def analyses(kernels: list[Kernel]) -> list[Analysis]:
    """Analyze every kernel of the corpus."""
    return [analyze(kernel) for kernel in kernels]


_BESIDE = ("corpus", "cases", "outcomes")


@pytest.fixture(scope="session")
def published(corpus: Path, once: Callable[[str, Callable[[], Any]], Any]) -> list[AnalyzedReport]:
    """Analyze everything published beside the corpus as well, including texts and exports."""
    folders = [corpus.parent / name for name in _BESIDE]
    missing = [folder for folder in folders if not folder.is_dir()]
    if missing:
        pytest.skip(f"nothing at {missing}")
    return once("published", lambda: list(analyze_paths(folders).reports))


@pytest.fixture(scope="session")
def rows(corpus: Path, once: Callable[[str, Callable[[], Any]], Any]) -> dict[str, Row]:
    """Compare the whole corpus with the independent numbers it contains."""
    return once("rows", lambda: {row.key: row for row in compare(read_folder(corpus)[0], corpus)})
