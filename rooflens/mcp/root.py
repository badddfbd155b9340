"""The folder that a client may read: paths are relative to it, and links that leave it are not followed."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from rooflens.analyzing import Analyzed, Basis, analyze_inputs, analyze_store
from rooflens.errors import InputError, near_names
from rooflens.format import cut_middle, some
from rooflens.ingest.reports.inputs import Inputs, find_inputs, is_timeline, timelines_in
from rooflens.ingest.reports.jobs import Job
from rooflens.ingest.reports.report import ReadOptions
from rooflens.ingest.reports.unpacking import sidecar
from rooflens.ingest.sources import SourceFolder
from rooflens.model.program.program import Program
from rooflens.model.roofline.datasheets import the_datasheet
from rooflens.model.selecting import Selection
from rooflens.model.store import MARKER
from rooflens.programs import read_programs

Stamp = tuple[tuple[str, int, int], ...]
"""Path, time of the last change in nanoseconds, and size in bytes of each file read."""

_LISTED = "`list_reports` names the reports"
_NAMED_CHARACTERS = 200
_ANALYSES_KEPT = 8
"""Places whose analyses are kept: a client asks several things about one report."""

MOST_KERNELS = 20_000
"""Larger places are for the command line: all analyses are held in memory here, some 15 kB per kernel."""


class Root:
    """Read reports, folders of them and stores below one folder, and cache the latest analyses."""

    def __init__(self, folder: Path) -> None:
        """Take the folder."""
        self.folder = folder.resolve()
        self._kept: OrderedDict[tuple[Path, str], tuple[Stamp, Stamp, Analyzed]] = OrderedDict()

    def inside(self, given: str) -> Path:
        """Resolve a path relative to the folder.

        Raises:
            InputError: The path is invalid, or leads out of the folder.
        """
        try:
            place = (self.folder / given).resolve()
            place.exists()  # raises if the path is too long for the system
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(f"`{cut_middle(given, _NAMED_CHARACTERS)}` is not a path", _LISTED) from error
        if not place.is_relative_to(self.folder):
            raise InputError(f"`{given}` is outside the folder that this server reads", _LISTED)
        return place

    def inputs(self, given: str) -> Inputs:
        """Find the reports of a file or a folder; links that leave the folder are skipped.

        Raises:
            InputError: The path leads out of the folder, or holds no report.
        """
        place = self.inside(given)
        try:
            found = find_inputs([str(place)])
        except InputError as error:
            hint = error.hint if place.exists() else self._paths_like(given)
            raise InputError(self._without_folder(str(error)), hint) from error
        jobs = tuple(Job(job.path, self._relative_path(job.path)) for job in found.jobs if self._is_inside(job.path))
        if not jobs:
            raise InputError(f"no reports in `{given}`", _LISTED)
        return replace(found, jobs=jobs)

    def _paths_like(self, given: str) -> str:
        """Suggest paths below the folder whose name resembles a missing path."""
        with suppress(InputError):
            paths = [
                self._relative_path(job.path)
                for job in find_inputs([str(self.folder)]).jobs
                if self._is_inside(job.path)
            ]
            folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"."}
            known = [*paths, *sorted(folders), *self.stores()]
            name = PurePosixPath(given).name
            by_name = {PurePosixPath(path).name: path for path in known}
            same = [path for path in known if PurePosixPath(path).name == name]
            near = same or near_names(given, known) or [by_name[one] for one in near_names(name, by_name)]
            if near:
                return f"did you mean {some((f'`{path}`' for path in near), ' or ')}? {_LISTED}"
        return _LISTED

    def stores(self) -> list[str]:
        """Return the stores in the folder itself and in its subfolders."""
        return sorted(
            self._relative_path(marker.parent) or "."
            for marker in (self.folder / MARKER, *self.folder.glob(f"*/{MARKER}"))
            if marker.is_file() and self._is_inside(marker)
        )

    def traces(self, given: str = ".") -> list[Job]:
        """Find the traces, and exports of nsys, at a path: the file itself, or those of a folder, also beside reports.

        Raises:
            InputError: The path leads out of the folder.
        """
        place = self.inside(given)
        found = timelines_in(place, beside_reports=True) if place.is_dir() else (place,) if is_timeline(place) else ()
        return [Job(path, self._relative_path(path)) for path in found if path.resolve().is_relative_to(self.folder)]

    def programs(self, given: str, selection: Selection, gpu: str = "") -> tuple[Program, ...]:
        """Read a trace, or all traces of a folder without reports; empty if the path is neither.

        Raises:
            InputError: The path leads out of the folder, or a trace cannot be read.
            NoMatchError: No kernel matches.
        """
        place = self.inside(given)
        jobs = [] if place.is_dir() and not timelines_in(place) else self.traces(given)
        if not jobs:
            return ()
        try:
            return read_programs(jobs, gpu or None, selection=selection)
        except InputError as error:
            raise type(error)(self._without_folder(str(error)), error.hint) from error

    def analyzed(self, given: str, gpu: str = "") -> Analyzed:
        """Analyze a report, a folder of them, or a store; what has not changed is not read again.

        Args:
            given: Its path, relative to the folder.
            gpu: The GPU of exports and texts that name none, or a part of its name.

        Raises:
            UsageError: No GPU, or several, are called so.
            InputError: The path leads out of the folder, or holds no report or too many kernels.
        """
        place, gpu = self.inside(given), the_datasheet(gpu).id if gpu else ""
        key, stamp = (place, gpu), tuple(self._stamps(place))
        kept = self._kept.pop(key, None)
        is_kept = kept is not None and kept[0] == stamp and kept[1] == self._source_stamps(kept[2])
        found = kept[2] if kept is not None and is_kept else self._analyze_path(place, given, gpu)
        self._kept[key] = stamp, self._source_stamps(found), found
        # What was asked for longest ago is forgotten.
        while len(self._kept) > _ANALYSES_KEPT:
            self._kept.popitem(last=False)
        return found

    def _analyze_path(self, place: Path, given: str, gpu: str) -> Analyzed:
        if not (place / MARKER).is_file():
            basis = Basis(sources=SourceFolder(self.folder, is_asked=False))
            reading = ReadOptions("auto", gpu=gpu or None, gpu_option="gpu")
            return analyze_inputs(self.inputs(given), basis, reading=reading)
        if not all(map(self._is_inside, place.rglob("*"))):
            raise InputError(f"the store `{given}` has links that lead out of the folder", "name another place")
        from rooflens.model.store.dataset import Store  # noqa: PLC0415 - loads pyarrow: only where there is a store

        kernels = Store.existing(place).kernel_count()
        if kernels > MOST_KERNELS:
            raise InputError(
                f"`{given}` holds {kernels:,} kernels, too many for a client",
                "name a smaller place, or use the command line",
            )
        return analyze_store(place)

    def _stamps(self, place: Path) -> Iterator[tuple[str, int, int]]:
        files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
        for path in (*files, *(sidecar(path) for path in files)):
            if path.exists():
                status = path.stat()
                yield str(path), status.st_mtime_ns, status.st_size

    def _source_stamps(self, analyzed: Analyzed) -> Stamp:
        """Return what identifies the state of the source files that an answer shows lines of."""
        sources = (source for one in analyzed.analyses for source in one.kernel.sources.values())
        paths = sorted({self.folder / source.path for source in sources if source.path is not None})
        return tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in paths if path.exists())

    def _is_inside(self, path: Path) -> bool:
        return all(one.resolve().is_relative_to(self.folder) for one in (path, sidecar(path)))

    def _relative_path(self, path: Path) -> str:
        return Path(os.path.relpath(path, self.folder)).as_posix()

    def _without_folder(self, message: str) -> str:
        return message.replace(f"{self.folder}{os.sep}", "").replace(str(self.folder), ".")
