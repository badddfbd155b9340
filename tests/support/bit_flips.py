"""Flip single bits in the values of reports that rooflens uses, and write all outputs of the result.

A flipped bit makes a clock of 1e308 Hz, a date in 36,000 years, a negative count. It may cost its kernel, with a
reason, or the report, with an error, but must never give a traceback or a bug that only a guard caught.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from msgspec import Struct, field

from rooflens.analyzing import Analyzed, analyze_inputs, analyze_store
from rooflens.errors import RooflensError
from rooflens.ingest.load import ingest_reports
from rooflens.ingest.reports.container import outline
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.reports.report import ReadOptions
from rooflens.ingest.reports.results import is_wanted
from rooflens.model.failed import ALL_NAN, is_bug
from rooflens.model.store.dataset import Store
from rooflens.model.summary import summarize
from rooflens.report.content import build_content
from rooflens.report.data import to_csv, to_json
from rooflens.report.overview.document import overview
from rooflens.report.overview.kernels import kernels_document
from rooflens.report.page.page import render_page
from rooflens.report.writers.markdown import to_markdown

READING = ReadOptions(reader="direct", raw="values")
"""NVIDIA's module only adds the text of instructions, which takes longer than all else."""

PAGES = 0.1
"""Part of the flips of which a page is drawn: that takes most of the time."""
ANYWHERE = 0.1
"""Part of the flips that may hit any bit of the file."""
TOP = 0.5
"""Part of the flips of a double that hit its sign or its exponent."""

_SCALAR = re.compile(rb"\x08([\x80-\xff]{0,2}[\x00-\x7f])\x12(?:\x09\x19|[\x02-\x0b]\x28)")
"""What stands before the double or the 64-bit count of a metric: the number of its name is the group."""


class Tally(Struct):
    """Outcomes of the flips.

    Attributes:
        refused: Reports that could not be read, with an error.
        failed: Kernels that failed because of an impossible value.
        bugs: Place and words of each exception, caught by a guard or not at all, with its count and the flip before it.
    """

    flips: int = 0
    refused: int = 0
    failed: int = 0
    bugs: Counter[str] = field(default_factory=Counter)
    after: dict[str, str] = field(default_factory=dict)

    def add(self, bug: str, flip: str) -> None:
        """Count an exception."""
        self.bugs[bug] += 1
        self.after.setdefault(bug, flip)

    @contextmanager
    def heard(self, what: str, flip: str) -> Iterator[None]:
        """Count the exception of a step, unless it is an error with words for the user."""
        try:
            yield
        except RooflensError:
            self.refused += 1
        except Exception as error:  # noqa: BLE001 - what is looked for
            place = error.__traceback__
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else "?"
            self.add(f"{what}: {type(error).__name__} at {where}: {error}", flip)


def bit_flips(reports: Sequence[Path], count: int, seed: int, *, pages: float = PAGES) -> Tally:
    """Flip `count` bits, one at a time, each in a copy of one of the reports."""
    chance, tally = Random(seed), Tally()  # noqa: S311 - a choice of bits, no secret
    with TemporaryDirectory(prefix="rooflens-flips-") as name:
        for _ in range(count):
            source = chance.choice(reports)
            data = bytearray(source.read_bytes())
            bit = _bit(source, chance, len(data))
            data[bit // 8] ^= 1 << bit % 8
            tally.flips += 1
            _try(Path(name), bytes(data), tally, f"bit {bit} of {source.name}", with_page=chance.random() < pages)
    return tally


def _bit(report: Path, chance: Random, size: int) -> int:
    """Choose a bit: usually in a value that is used, sometimes anywhere."""
    places = _places(report)
    if not places or chance.random() < ANYWHERE:
        return chance.randrange(size * 8)
    start, is_double = chance.choice(places)
    if not is_double:
        return start * 8 + chance.randrange(7)
    return start * 8 + (chance.randrange(52, 64) if chance.random() < TOP else chance.randrange(64))


@lru_cache(maxsize=1024)
def _places(report: Path) -> tuple[tuple[int, bool], ...]:
    """Return the places of the used doubles and counts of a report, and which are doubles."""
    data = report.read_bytes()
    names = outline(data).strings
    found = []
    for match in _SCALAR.finditer(data):
        number = sum((byte & 0x7F) << 7 * i for i, byte in enumerate(match[1]))
        if number < len(names) and is_wanted(names[number].decode("utf-8", "replace")):
            found.append((match.end(), match[0].endswith(b"\x19")))
    return tuple(found)


def _try(folder: Path, data: bytes, tally: Tally, flip: str, *, with_page: bool) -> None:
    """Do with a damaged report all that commands do."""
    file = folder / "flipped.ncu-rep"
    file.write_bytes(data)
    with tally.heard("analyze", flip):
        found = analyze_inputs(find_inputs([str(file)]), reading=READING)
        _look(found, tally, flip)
        for what, write in _writers(found, with_page=with_page).items():
            with tally.heard(what, flip):
                write()
    with tally.heard("store", flip), TemporaryDirectory(dir=folder) as place:
        store = Store(place)
        for _, error in ingest_reports(find_inputs([str(file)]).jobs, store, options=READING).failures:
            if "bug" in error.hint:
                tally.add(f"ingest: {error}", flip)
        if store.digests():
            _look(analyze_store(place, keep=True), tally, flip)


def _look(found: Analyzed, tally: Tally, flip: str) -> None:
    """Count the failed kernels, and the bugs that a guard caught."""
    for _, error in found.failures:
        tally.refused += 1
        if "bug" in error.hint:
            tally.add(f"report: {error}", flip)
    for report in found.reports:
        for analysis in report.analyses:
            if is_bug(analysis.kernel):
                tally.add(f"kernel: {analysis.kernel.status_reason}", flip)
            elif analysis.kernel.failed and analysis.kernel.status_reason != ALL_NAN:
                tally.failed += 1
    if found.not_kept is not None:
        tally.add(f"keep: {found.not_kept}", flip)


def _writers(found: Analyzed, *, with_page: bool) -> dict[str, Callable[[], object]]:
    reports, limits = found.reports, found.limits
    analyses = [analysis for report in reports for analysis in report.analyses]
    writers: dict[str, Callable[[], object]] = {
        "json": lambda: to_json(analyses, reports),
        "csv": lambda: to_csv(analyses),
        "table": lambda: to_markdown(kernels_document(summarize(analyses))),
        "terminal": lambda: to_markdown(overview(build_content(reports, "flipped", limits), "terminal")),
        "markdown": lambda: to_markdown(overview(build_content(reports, "flipped", limits), "file")),
    }
    if with_page:
        writers["page"] = lambda: render_page(reports, title="flipped", limits=limits)
    return writers
