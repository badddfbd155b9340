"""An answer does not depend on its format: every door gives each launch the same class, limit and first move."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec import Struct
from support.encoded_code import report_of_loops

import rooflens as rl
from rooflens.analyzing import analyze_paths
from rooflens.cli.group import main
from rooflens.model.records import Analysis
from rooflens.model.summary import summarize
from rooflens.report.words.verdict import best_move

_KERNELS, _LAUNCHES = 7, 2
"""More kernels than a page shows in full, and launches that stand for no other."""
_OF_THE_CODE = "load the next tile while this one is used"
"""What only machine code tells."""


class Judged(Struct, frozen=True):
    """What a door says of a launch; None for what it does not say."""

    bound: str | None = None
    limit: float | None = None
    move: str | None = None

    def differs(self, other: Judged) -> bool:
        """Return whether both say something that is not the same."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__struct_fields__)
        return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def _run(*arguments: object) -> str:
    done = CliRunner().invoke(main, [str(one) for one in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def _judged(analysis: Analysis) -> Judged:
    verdict = analysis.verdict
    move = verdict.moves[0].text if verdict.moves else ""
    return Judged(verdict.bound, verdict.limit.factor, move)


def _of_json(text: str) -> Iterator[tuple[str, Judged]]:
    for one in json.loads(text)["kernels"]:
        verdict = one["verdict"]
        moves = verdict["moves"]
        yield one["key"], Judged(verdict["bound"], verdict["limit"]["factor"], moves[0]["text"] if moves else "")


def _of_rows(rows: Iterator[Mapping[str, Any]]) -> Iterator[tuple[str, Judged]]:
    for row in rows:
        limit = row["verdict_limit_factor"]
        yield row["key"], Judged(row["verdict_bound"], float(limit) if limit not in {"", None} else None)


def _of_store(report: Path, folder: Path) -> Iterator[tuple[str, Judged]]:
    _run("ingest", report, "--store", folder / "store")
    return _of_json(_run("analyze", "--store", folder / "store", "--format", "json"))


def _of_mcp(report: Path, _: Path) -> Iterator[tuple[str, Judged]]:
    pytest.importorskip("mcp")
    from rooflens.mcp.answers import Answers  # noqa: PLC0415 - an extra
    from rooflens.mcp.root import Root  # noqa: PLC0415 - as above

    for one in Answers(Root(report.parent)).list_kernels(report.name).data["kernels"]:
        yield one["key"], Judged(one["bound"], one["limit"])


def _of_comparison(report: Path, _: Path) -> Iterator[tuple[str, Judged]]:
    keys = {one.name: one.analysis.key for one in summarize(_analyses(report))}
    for ladder in json.loads(_run("compare", report, report, "--anyway", "--format", "json"))["ladders"]:
        # A program whose kernels all change alike is followed as a whole.
        for rung in ladder["rungs"] if ladder["kernel"] else ():
            yield keys[rung["kernel"]], Judged(rung["bound"], rung["limit"], rung["move"])


_BY_LAUNCH: Mapping[str, Callable[[Path, Path], Iterator[tuple[str, Judged]]]] = {
    "analyze --format json": lambda report, _: _of_json(_run("analyze", report, "--format", "json")),
    "analyze --format csv": lambda report, _: _of_rows(
        csv.DictReader(io.StringIO(_run("analyze", report, "--format", "csv")))
    ),
    "explain --format json": lambda report, _: _of_json(_run("explain", report, "--format", "json")),
    "report -o json": lambda report, folder: _of_json(_file(report, folder, "json")),
    "a store": _of_store,
    "Python": lambda report, _: ((kernel.key, _judged(kernel.analysis)) for kernel in rl.open(report)),
    "Python, one kernel": lambda report, _: _of_json(
        json.dumps({"kernels": [kernel.to_dict() for kernel in rl.open(report)]})
    ),
    "a frame": lambda report, _: _of_rows(iter(rl.open(report).to_arrow().to_pylist())),
    "a server's list": _of_mcp,
    "compare --format json": _of_comparison,
}
"""Doors that say it of launches, or of the launch that stands for a kernel, by its key."""


def _file(report: Path, folder: Path, ending: str) -> str:
    file = folder / f"written.{ending}"
    _run("report", report, "-o", file)
    return file.read_text("utf-8")


_BY_KERNEL: Mapping[str, Callable[[Path, Path], str]] = {
    "the table": lambda report, _: _run("analyze", report),
    "analyze --format md": lambda report, _: _run("analyze", report, "--format", "md"),
    "analyze --format digest": lambda report, _: _run("analyze", report, "--format", "digest", "--max-tokens", "4000"),
    "report -o html": lambda report, folder: html.unescape(_file(report, folder, "html")),
    "explain": lambda report, _: "".join(
        _run("explain", report, "--kernel", one.analysis.key, "--format", "md") for one in summarize(_analyses(report))
    ),
}
"""Doors that say it of kernels in words."""
_SHORT = frozenset({"analyze --format digest"})
"""Doors that name the moves of a few kernels alone."""


def _analyses(report: Path) -> list[Analysis]:
    return analyze_paths([report]).analyses


def _apart(report: Path, folder: Path) -> Iterator[str]:
    """Yield every launch of which a door says something else than the analysis, and every move that a door lacks."""
    analyses = _analyses(report)
    known = {one.key: _judged(one) for one in analyses}
    for door, of in _BY_LAUNCH.items():
        said = dict(of(report, folder))
        yield from (f"{door}: {key}: {one} for {known[key]}" for key, one in said.items() if one.differs(known[key]))
    moves = {best_move(one.analysis).partition(":")[0] for one in summarize(analyses)} - {""}
    for door, text in _BY_KERNEL.items():
        if door in _SHORT and len(moves) > 1:
            continue
        whole = _plain(text(report, folder))
        yield from (f"{door}: lacks `{move}`" for move in moves if _plain(move) not in whole)


def _plain(text: str) -> str:
    """Return words as they are compared: without line breaks, marks of Markdown and large letters."""
    return re.sub(r"\s+", " ", re.sub(r"[`*\\]", "", text)).casefold()


def test_every_format_judges_each_launch_alike(tmp_path: Path) -> None:
    """Of more kernels than a page shows in full, each launched several times, with what only their code tells."""
    report = report_of_loops(tmp_path / "loops.ncu-rep", _KERNELS, _LAUNCHES)
    judged = [_judged(one) for one in _analyses(report)]
    assert len(judged) == _KERNELS * _LAUNCHES
    assert all(_OF_THE_CODE in (one.move or "") for one in judged)
    assert not (apart := [*_apart(report, tmp_path)]), "\n".join(apart)


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["GPU-MMS__profile", "GPU_workshop__MW_Baseline", "llm.c__adamw_coalsecing_shared"])
def test_every_format_judges_published_kernels_alike(corpus: Path, tmp_path: Path, name: str) -> None:
    """So they do on recorded reports."""
    assert not (apart := [*_apart(corpus / f"{name}.ncu-rep", tmp_path)]), "\n".join(apart)
