"""Cache what NVIDIA's module and rooflens read from reports, since rules change more often than readers."""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from nvidia_results import NvidiaKernel, digest_of, read_nvidia_kernels

import rooflens
from rooflens.ingest.load import Loaded, load_reports
from rooflens.ingest.reports.inputs import find_inputs, has_name_of_report
from rooflens.ingest.reports.jobs import Job
from rooflens.model.records import Kernel, Run

_PACKAGE = Path(rooflens.__file__).parent
_READS_KERNELS = ("ingest", "model/counters", "model/records.py")
_READS_RULES = ("nvidia_results.py",)


class Cache:
    """Pickles in a folder of this user."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise PermissionError(f"{folder} belongs to somebody else: a pickle of theirs is not read")

    def get(self, key: str) -> Any:
        """Return the value of a key; None if there is none."""
        file = self._folder / key
        return pickle.loads(file.read_bytes()) if file.is_file() else None  # noqa: S301 - our own folder, see above

    def put(self, key: str, value: object) -> None:
        """Store a value such that a reader never sees half of it."""
        with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as stream:
            pickle.dump(value, stream)
        Path(stream.name).replace(self._folder / key)


class AlreadyRead:
    """Contains the kernels that tests have read already, and stores nothing."""

    def __init__(self, loaded: Loaded) -> None:
        self._kernels = {run.digest[:16]: (run, kernels) for run, kernels in loaded.reports}

    def get(self, key: str) -> Any:
        """Return the kernels of a report."""
        what, _, digest = key.split("-")
        return self._kernels.get(digest) if what == "kernels" else None

    def put(self, _key: str, _value: object) -> None:
        """Discard the value."""


def user_cache() -> Cache:
    """Return the cache in the folder of temporary files."""
    return Cache(Path(tempfile.gettempdir()) / f"rooflens-nvidia-findings-{os.getuid()}")


def folders_beside(corpus: Path) -> list[Path]:
    """Return the corpus and, if present, the cases beside it."""
    return [folder for folder in (corpus, corpus.parent / "cases") if folder.is_dir()]


Read = tuple["Run", tuple[tuple["NvidiaKernel", "Kernel"], ...]]


def read_all(paths: Sequence[Path], cache: Cache | AlreadyRead) -> list[Read]:
    """Read every report of some folders: its run, and each kernel as read by NVIDIA's rules and by rooflens."""
    found = find_inputs([str(path) for path in paths]).jobs
    jobs = {digest_of(job.path): job for job in found if has_name_of_report(job.path)}
    ours = _cached(jobs, cache, "kernels", _sources(_PACKAGE, _READS_KERNELS), _load)
    theirs = _cached(jobs, cache, "rules", _sources(Path(__file__).parent, _READS_RULES), _rules)
    return [
        (ours[digest][0], tuple(zip(theirs[digest], ours[digest][1], strict=True))) for digest in jobs if ours[digest]
    ]


def _cached(
    jobs: dict[str, Job], cache: Cache | AlreadyRead, what: str, version: str, make: Callable[[dict[str, Job]], dict]
) -> dict[str, Any]:
    kept = {digest: cache.get(f"{what}-{version}-{digest[:16]}") for digest in jobs}
    made = make({digest: job for digest, job in jobs.items() if kept[digest] is None})
    for digest, value in made.items():
        cache.put(f"{what}-{version}-{digest[:16]}", value)
    return kept | made


def _load(jobs: dict[str, Job]) -> dict[str, tuple[Run, tuple[Kernel, ...]] | tuple[()]]:
    """Read reports with rooflens, leaving out those it cannot read."""
    loaded = load_reports(list(jobs.values())) if jobs else None
    found = {run.digest: (run, kernels) for run, kernels in loaded.reports} if loaded else {}
    return {digest: found.get(digest, ()) for digest in jobs}


def _rules(jobs: dict[str, Job]) -> dict[str, tuple[NvidiaKernel, ...]]:
    return {digest: read_nvidia_kernels(job.path) for digest, job in jobs.items()}


def _sources(folder: Path, names: Iterable[str]) -> str:
    """Return a digest of the sources that determine the cached values."""
    digest = hashlib.sha256()
    for name in names:
        place = folder / name
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
