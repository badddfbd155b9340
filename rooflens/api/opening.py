"""Open reports from files, folders, stores and addresses."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rooflens.analyzing import Analyzed, Basis, analyze_inputs, analyze_store, read_thresholds, read_timeline
from rooflens.api import notebook
from rooflens.api.report import Report
from rooflens.api.sources import Source
from rooflens.errors import UsageError
from rooflens.files import path_text
from rooflens.format import as_unicode, count
from rooflens.ingest.reports.inputs import find_inputs, is_timeline
from rooflens.ingest.reports.report import ReadOptions
from rooflens.ingest.sources import SourceFolder
from rooflens.model.selecting import Selection, select
from rooflens.model.store import store_at
from rooflens.model.summary import total_ns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.ingest.reports.jobs import Job


def open(  # noqa: A001, PLR0913 - the verb of the whole API, as in `rl.open`
    *paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    kernel: str | Sequence[str] | None = None,
    nvtx: str | Sequence[str] | None = None,
    thresholds: str | os.PathLike[str] | None = None,
    gpu: str | None = None,
    timeline: str | os.PathLike[str] | None = None,
    source: str | os.PathLike[str] | None = None,
) -> Report | Any:
    """Open reports, and analyze every kernel in them; or a trace, with reports on its kernels.

    Args:
        paths: Reports (`.ncu-rep`, `.ncu-repz`, also gzipped), CSV exports of ncu, folders of them, stores written by
            `ingest`, a report of a store (`STORE/DIGEST`), and addresses of any of these such as `s3://bucket/folder`;
            or lists of all these. Or a trace: of the PyTorch profiler, an export of nsys, or a summary that one of
            them printed.
        kernel: Only kernels that match this pattern, or one of several: `adamw` anywhere in a name, `adamw*` for a
            whole name, `re:gemm.*128`, or a key.
        nvtx: Only kernels launched in an NVTX range that matches this pattern, or one of several: `step*/forward`.
        thresholds: TOML file of thresholds that override `rooflens/model/verdict/thresholds.toml`.
        gpu: Name of the GPU for CSV exports that do not state it; for stores, only kernels on GPUs of that name.
        timeline: What the program does without ncu: an SQLite export of nsys, its `.nsys-rep`, or a trace of the
            PyTorch profiler. Kernels then count by their time there.
        source: Folder with the kernels' source files, for reports that embed none: lines then have their text.

    Returns:
        The kernels, in the order of `analyze`. A report that cannot be read does not affect the others: a warning names
        it, and `Report.failures` holds it. Of a trace a `Program`, as `trace` returns it.

    Raises:
        UsageError: No path is given, a path is empty or no path, or a pattern cannot be parsed.
        InputError: A path does not exist, nothing can be read, or no kernel matches.
        EnvironmentMissingError: Only nsys can read the timeline, and it is not installed.

    >>> import rooflens as rl
    >>> report = rl.open("fixtures/synthetic/attention.synthetic.ncu-rep")
    >>> report[0].verdict.bound
    'compute'
    >>> len(rl.open("fixtures/synthetic", kernel="attention_*_gemm"))
    2
    """
    given = [
        one for path in paths for one in ([path] if isinstance(path, (str, bytes, os.PathLike)) else _as_list(path))
    ]
    if not given:
        raise UsageError("no report given", 'for example `rooflens.open("last-week.ncu-rep")`')
    selection = Selection(kernel=_as_texts(kernel), nvtx=_as_texts(nvtx))
    if traces := [path for path in map(path_text, given) if os.path.isfile(path) and is_timeline(path)]:  # noqa: PTH113 - names may be too long for a path
        from rooflens.api.program import open_program, the_only

        reports = [path for path in map(path_text, given) if path not in traces]
        beside = open(*reports, thresholds=thresholds, gpu=gpu, source=source).analyzed.reports if reports else ()
        return open_program(the_only(traces), selection, gpu, beside)
    basis = Basis(
        limits=read_thresholds(None if thresholds is None else Path(thresholds)),
        timeline=None if timeline is None else read_timeline(timeline),
        sources=None if source is None else SourceFolder(path_text(source)),
    )
    found, places = _read_arguments([path_text(path) for path in given], ReadOptions(gpu=gpu, gpu_option="gpu"), basis)
    if not found.reports and found.failures:
        raise found.failures[0][1]
    if found.failures:
        message = (
            f"{len(found.failures)} of {count(len(found.failures) + len(found.reports), 'report')} could not be read"
        )
        warnings.warn(f"{message}: `failures` of what `open` returned says why", UserWarning, stacklevel=2)
    if (shell := notebook.shell()) is not None:
        notebook.register(shell)
    sources = {report.run.digest: Source(report, places[report.run.digest], gpu) for report in found.reports}
    chosen = found.only(select(found.reports, selection))
    return Report(chosen, sources, total_ns_of(found.analyses))


def _as_list(given: object) -> list[Any]:
    """Split the argument into several paths; an argument without items stays whole, and is refused as such."""
    return list(given) if isinstance(given, Iterable) else [given]


def _as_texts(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _read_arguments(given: Sequence[str], reading: ReadOptions, basis: Basis) -> tuple[Analyzed, dict[str, Job | str]]:
    """Read the arguments; return the result with the place of each report, by digest."""
    stores = {path: at for path in dict.fromkeys(given) if (at := store_at(path)) is not None}
    files = [path for path in given if path not in stores]
    found: list[Analyzed] = []
    places: dict[str, Job | str] = {}
    if files:
        inputs = find_inputs(files)
        jobs = {as_unicode(job.source): job for job in inputs.jobs}
        found.append(analyze_inputs(inputs, basis, reading=reading))
        places |= {report.run.digest: jobs[report.run.source] for report in found[0].reports}
    for store, digits in stores.values():
        of_store = analyze_store(store, basis, digits=digits)
        chosen = select(of_store.reports, Selection(gpu=reading.gpu or ""))
        new = tuple(report for report in chosen if report.run.digest not in places)
        places |= {report.run.digest: store for report in new}
        skipped = of_store.skipped_count + len(chosen) - len(new)
        found.append(replace(of_store, reports=new, skipped_count=skipped))
    return found[0].joined(found[1:]), places
