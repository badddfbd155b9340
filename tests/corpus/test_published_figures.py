"""Compare the published figures of `fixtures/published` with the reports they were written from."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

sys.path.append(str(Path(__file__).parents[2] / "fixtures"))

from collections.abc import Iterator, Sequence

import publish

from rooflens.ingest.load import Loaded
from rooflens.ingest.reports.container import inspect
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.report import ReadOptions
from rooflens.model.analyze import analyze
from rooflens.model.records import Kernel

each_report = pytest.mark.parametrize("name", publish.PUBLISHED)
each_other = pytest.mark.parametrize("origin", publish.OTHERS, ids=lambda origin: origin.name)

_SMALL = ("KernelBench", "self-join-MiSTIC__profileHIGGS", "cudaCode", "speedy_scan")
"""Reports that are written again in a second: with and without code, of old versions and with a failed kernel."""

BY_DESIGN = {
    "digest": "of the file",
    "source": "the path as it was given",
    "file": "without its folders",
    "text": "source text",
    "sass": "operands",
    "message": "NVIDIA's sentence",
    "title": "where a rule had none, what its sentence named",
}
"""What of an analysis differs from that of the original, by name of the field, and what is left out there."""


@pytest.fixture
def other(origin: publish.Origin, corpus: Path) -> Path:
    """Return an original that is not in the corpus's manifest; skip the test if it is missing."""
    folders = (corpus, corpus.parent / "candidates", corpus.parent / "outcomes" / "texts")
    found = [path for folder in folders if (path := folder / origin.file).is_file()]
    return found[0] if found else pytest.skip(f"`{origin.file}` is not at hand")


def _leaves(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    if not isinstance(node, dict | list):
        yield path, node
    for key, value in items:
        yield from _leaves(value, (*path, str(key)))


def _analysis(kernel: Kernel) -> dict[tuple[str, ...], Any]:
    """Analyze a kernel without what its machine code and source files tell, which figures lack."""
    return dict(_leaves(msgspec.json.decode(msgspec.json.encode(analyze(replace(kernel, inside=None, sources={}))))))


@pytest.fixture(scope="session")
def originals(loaded: Loaded) -> dict[str, tuple[Kernel, ...]]:
    """Return the kernels of the original reports by file name."""
    return {Path(run.source).name: kernels for run, kernels in loaded.reports}


@each_report
def test_figures_are_analyzed_as_the_original(
    name: str, originals: dict[str, tuple[Kernel, ...]], fixtures: Path
) -> None:
    """Every number, verdict, finding and hot spot equals the original's; only the texts of `BY_DESIGN` differ."""
    _hold(read_report(fixtures / publish.FOLDER / name, name).kernels, originals[name])


@each_other
def test_figures_of_others_are_analyzed_as_the_original(origin: publish.Origin, other: Path, fixtures: Path) -> None:
    """The same holds for text printed by ncu, read with the GPU that its repository names."""
    before = read_report(other, origin.file, ReadOptions(gpu=origin.gpu)).kernels
    _hold(read_report(fixtures / publish.FOLDER / origin.name, origin.name).kernels, before)


@each_other
def test_figures_of_others_are_what_the_writer_writes(origin: publish.Origin, other: Path, fixtures: Path) -> None:
    """The stored bytes are those that the script writes today."""
    assert (fixtures / publish.FOLDER / origin.name).read_bytes() == publish.figures_of(other, origin)


def _hold(after: Sequence[Kernel], before: Sequence[Kernel]) -> None:
    """Compare the analyses of figures with those of their originals."""
    assert len(before) == len(after)
    for original, figures in zip(before, after, strict=True):
        one, two = _analysis(original), _analysis(figures)
        assert one.keys() == two.keys()
        differing = {path for path in one if one[path] != two[path]}
        assert {path[-1] for path in differing} <= set(BY_DESIGN), original.name
        for path in differing:
            match path[-1]:
                case "file":
                    assert two[path] == re.split(r"[/\\]", one[path])[-1]
                case "text":
                    assert two[path] is None
                case "sass":
                    assert two[path] in one[path].split()
                case "title":
                    assert one[path] == ""


@pytest.mark.parametrize("name", [name for name in publish.PUBLISHED if name.startswith(_SMALL)])
def test_figures_are_what_the_writer_writes(name: str, corpus: Path, fixtures: Path) -> None:
    """The stored bytes are those that the script writes today, so that the script shows how they were made."""
    origin = publish.read_origins(corpus)[name]
    assert (fixtures / publish.FOLDER / name).read_bytes() == publish.figures_of(corpus / name, origin)


@each_report
def test_figures_name_nobody(name: str, corpus: Path, fixtures: Path) -> None:
    """No machine, user or folder is named, except where the repository has the same name."""
    session = inspect(corpus / name).sessions[0]
    told = f"{session.process_name} {session.command_line}"
    users = re.findall(r"(?:/home/|Users\\|/scratch/|homes-0/a/|/u/home/)([^/\\]+)", told)
    folders = re.findall(r"(?<![\w.])/[\w/.-]*/", told)
    names = {session.host or "", *users, *folders} - {""}
    origin = publish.read_origins(corpus)[name]
    kept = (fixtures / publish.FOLDER / name).read_bytes().decode("latin-1").replace(origin.repository, "")
    assert [found for found in names if re.search(rf"(?<![\w-]){re.escape(found)}(?![\w-])", kept)] == []
