"""Hold that what `analyze` prints of a store is the same in pieces, from stored totals and from all analyses."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from support.alike import are_alike
from support.stored import DIGESTS, commit, tables_of

from rooflens.cli.group import main
from rooflens.model.analyze import MODEL_VERSION
from rooflens.model.store.store import Store
from rooflens.model.totals import totals_of
from rooflens.model.verdict.thresholds import override_thresholds
from rooflens.streaming import analyze_store

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store of two parts with three reports, of which the first one has the last path."""
    commit(tmp_path, tables_of(DIGESTS[7], 3))
    commit(tmp_path, tables_of(DIGESTS[2], 5), tables_of(DIGESTS[1], 2))
    return tmp_path


def printed(store: Path, *arguments: str) -> str:
    """Return what `analyze` prints of a store, which must do well."""
    done = CliRunner().invoke(main, ["analyze", "--store", str(store), *arguments])
    assert done.exit_code == 0, done.stderr
    return done.stdout


def refuse(*_: object) -> None:
    """Stand for an analysis that must not happen."""
    raise AssertionError("a kernel was analyzed")


@pytest.mark.parametrize("style", ["table", "md"])
def test_stored_totals_give_the_same_table_without_analyzing(
    store: Path, style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time nothing is analyzed, and the same is printed; so it is after compaction."""
    first = printed(store, "--format", style)
    monkeypatch.setattr("rooflens.analyzing.analyze", refuse)
    assert printed(store, "--format", style) == first
    assert CliRunner().invoke(main, ["store", "compact", str(store)]).exit_code == 0
    assert sorted(printed(store, "--format", style).splitlines()) == sorted(first.splitlines())


def test_totals_are_those_of_all_analyses(store: Path) -> None:
    """Added up piece by piece, from the store, or at once: the totals are equal."""
    reports = analyze_store(store).reports
    whole = totals_of([analysis for report in reports for analysis in report.analyses])
    for _ in range(2):
        found = analyze_store(store, keep=True, totals=True)
        assert [*found.totals] == whole
        assert [report.run for report in found.reports] == [report.run for report in reports]
        assert not any(report.analyses for report in found.reports)


def test_verdicts_of_other_thresholds_or_models_are_not_reused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Totals are stamped with what decided them: by other thresholds or another model kernels are analyzed again."""
    analyze_store(store, keep=True, totals=True)
    monkeypatch.setattr("rooflens.streaming.analyze_report", refuse)
    assert not analyze_store(store, totals=True).failures
    other = override_thresholds("[thresholds]\nslowdown = 1.9\n", "other.toml")
    assert len(analyze_store(store, other, totals=True).failures) == 3
    assert len(analyze_store(store, totals=True, where="duration_ns > 0").failures) == 3
    assert len(analyze_store(store, totals=True, without_nvidia=True).failures) == 3
    monkeypatch.setattr("rooflens.model.store.verdicts.MODEL_VERSION", MODEL_VERSION + 1)
    assert len(analyze_store(store, totals=True).failures) == 3


def test_only_new_reports_are_analyzed(store: Path) -> None:
    """What was added since the last analysis is analyzed, and stands beside what is known."""
    analyze_store(store, keep=True, totals=True)
    commit(store, tables_of(DIGESTS[3], 4))
    pieces: list[str] = []
    before = analyze_store(store).reports
    found = analyze_store(store, keep=True, totals=True)
    analyze_store(store, on_piece=lambda report: pieces.append(report.run.digest))
    assert [*found.totals] == totals_of([analysis for report in before for analysis in report.analyses])
    assert sorted(pieces) == sorted(report.run.digest for report in before)


@pytest.mark.parametrize("style", ["json", "csv", "table"])
def test_a_large_report_in_pieces_is_printed_the_same(
    store: Path, style: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report that comes two kernels at a time gives the same text as one that comes whole."""
    whole = printed(store, "--format", style)
    for table in ("roofline", "findings", "totals"):
        shutil.rmtree(tmp_path / table)
    monkeypatch.setattr("rooflens.streaming._PIECE", 2)
    monkeypatch.setattr("rooflens.cli.stored._AT_ONCE", 1)
    assert printed(store, "--format", style) == whole


def test_rows_stand_in_the_order_of_paths(store: Path) -> None:
    """JSON and CSV have the kernels by path and position, whatever the order in the store; the JSON is whole."""
    document = json.loads(printed(store, "--format", "json"))
    places = [(kernel["source"], kernel["index"]) for kernel in document["kernels"]]
    assert places == sorted(places)
    assert len(places) == 10
    rows = printed(store, "--format", "csv").splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == [source for source, _ in places]


def test_a_store_of_which_no_kernel_is_left_is_whole_json(tmp_path: Path) -> None:
    """A report without kernels gives a document with none."""
    commit(tmp_path, tables_of(DIGESTS[0], 0))
    assert json.loads(printed(tmp_path, "--format", "json"))["kernels"] == []


def test_damage_is_named_though_totals_are_stored(store: Path) -> None:
    """A part whose kernels are not what was committed is a failure, as it is without totals."""
    printed(store)
    victim = min((store / "kernels").iterdir())
    victim.write_bytes(victim.read_bytes()[:-1])
    done = CliRunner().invoke(main, ["analyze", "--store", str(store)])
    assert done.exit_code == 1
    assert "damaged store file" in done.stderr


def test_a_damaged_part_costs_as_many_reports_as_it_held(store: Path) -> None:
    """Two of three reports stood in it: terminal, Markdown and page say so; a file of unknown content is one file."""
    (victim,) = [part for part in Store(store).index().parts.values() if len(part.runs) == 2]
    (store / "kernels" / f"{victim.key}.parquet").write_bytes(b"")
    for style in ("table", "csv", "json", "md"):
        done = CliRunner().invoke(main, ["analyze", "--store", str(store), "--format", style])
        assert "\n2 of 3 reports could not be read\n" in done.stderr
    for style, words in (("md", "2 of 3 reports could not be read: "), ("html", "2 of 3 reports could not be read<")):
        assert words in CliRunner().invoke(main, ["report", "--store", str(store), "-o", "-", "--format", style]).stdout
    (store / "runs" / f"{victim.key}.parquet").write_bytes(b"")
    done = CliRunner().invoke(main, ["analyze", "--store", str(store)])
    assert "\nall in 1 file of the store could not be read\n" in done.stderr


def test_a_bug_is_not_kept_as_a_total(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed by a bug of ours is analyzed again the next time."""
    sound = printed(store, "--format", "md")
    shutil.rmtree(store / "totals")
    with monkeypatch.context() as patch:
        patch.setattr("rooflens.analyzing.find_attainable", refuse)
        assert "failed" in printed(store, "--format", "md")
    assert printed(store, "--format", "md") == sound


@pytest.mark.parametrize("style", ["table", "md"])
def test_several_processes_give_the_same(
    store: Path, style: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Analyzed side by side, a store prints the same and keeps the same rows as one that a single process analyzes.

    Sums of smaller pieces differ in their last digits.
    """
    alone = printed(store, "--format", style)
    kept = {table: pq.read_table(tmp_path / table) for table in ("roofline", "findings", "totals")}
    for table in kept:
        shutil.rmtree(tmp_path / table)
    monkeypatch.setattr("rooflens.streaming._MUCH", 1)
    monkeypatch.setattr("rooflens.streaming._PIECE", 2)
    monkeypatch.setattr("rooflens.streaming.usable_cores", lambda: 2)
    monkeypatch.setattr("rooflens.streaming.analyze_report", refuse)  # here, and not in the processes
    assert printed(store, "--format", style) == alone
    rows = {table: pq.read_table(tmp_path / table) for table in kept}
    assert all(are_alike(rows[table].to_pylist(), kept[table].to_pylist()) for table in kept)
