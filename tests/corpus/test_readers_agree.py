"""Compare our reader with NVIDIA's module on every available report: records, and every stored value."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.nvidia_reads import read_all
from support.same_report import differences_of

from rooflens.errors import InputError
from rooflens.ingest.reports.child import in_child
from rooflens.ingest.reports.inputs import find_inputs, has_name_of_report
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.report import ReadOptions, ReadReport
from rooflens.ingest.reports.texts import add_texts

pytestmark = pytest.mark.corpus

EVERYTHING = ReadOptions(raw="all", texts_later=True)


def _read(file: Path) -> ReadReport | InputError:
    try:
        return read_report(file, file.name, EVERYTHING)
    except InputError as error:
        return error


def test_both_readers_make_the_same_of_every_report(
    corpus: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels, rules, series, hot spots, values and instances are equal to the bit, and both refuse the same files."""
    monkeypatch.setenv("ROOFLENS_DEADLINE_S", "1200")  # the usual one is for a report, and this child reads hundreds
    folders = [fixtures, corpus, *(corpus.parent / name for name in ("cases", "outcomes"))]
    jobs = find_inputs([str(folder) for folder in folders if folder.is_dir()]).jobs
    files = [job.path for job in jobs if has_name_of_report(job.path)]
    read = {file: _read(file) for file in files}
    reports = [(file, found) for file, found in read.items() if isinstance(found, ReadReport)]
    ours = dict(zip((file for file, _ in reports), add_texts(reports, EVERYTHING), strict=True))
    theirs = dict(zip(files, in_child(read_all, files, EVERYTHING), strict=True))
    differences, value_count = [], 0
    for file, found in theirs.items():
        if isinstance(found, InputError) or file not in ours:
            if str(found)[:20] != str(read[file])[:20]:
                differences.append(f"{file}: {read[file]}, {found}")
            continue
        differences += [f"{file}: {difference}" for difference in differences_of(ours[file], found)]
        assert ours[file].raw is not None
        assert ours[file].instances is not None
        value_count += ours[file].raw.num_rows + ours[file].instances.num_rows
    assert differences == []
    assert value_count > 1_000_000
    assert len(ours) > len(theirs) * 0.9
