"""All stored numbers of reports, kernel by kernel, and kernels with only some of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.ingest.reports.read import read_report
from rooflens.ingest.reports.report import ReadOptions
from rooflens.ingest.reports.resolve import resolve
from rooflens.model.records import Kernel


class Stored(Struct, frozen=True):
    """A kernel, and every number stored for it, by metric name in base units."""

    kernel: Kernel
    numbers: Mapping[str, float]

    def but(self, *gone: str) -> Kernel:
        """Return the kernel without the metrics whose names start with one of these."""
        resolved = resolve({name: value for name, value in self.numbers.items() if not name.startswith(gone)})
        return replace(self.kernel, counters=resolved.values, counter_sources=resolved.sources)


def stored_in(path: Path) -> list[Stored]:
    """Read the kernels of a report that did not fail; a refused file gives none."""
    try:
        report = read_report(path, path.name, ReadOptions(raw="all", texts_later=True))
    except InputError:
        return []
    numbers: defaultdict[int, dict[str, float]] = defaultdict(dict)
    assert report.raw is not None
    for row in report.raw.to_pylist():
        number = next((row[kind] for kind in ("value_double", "value_uint64") if row.get(kind) is not None), None)
        if number is not None:
            numbers[row["kernel_index"]][row["name"]] = float(number)
    return [Stored(kernel, numbers[kernel.index]) for kernel in report.kernels if not kernel.failed]
