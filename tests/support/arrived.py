"""Read the files from a GPU day: the contents of archives, and the ranges of a report."""

from __future__ import annotations

import gzip
import tarfile
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path


def contents(home: Path) -> dict[str, bytes]:
    """Return the files of all archives in a folder, by their names."""
    pieces: defaultdict[str, dict[int, bytes]] = defaultdict(dict)
    for archive in sorted(home.glob("*.tar")):
        with tarfile.open(archive) as tar:
            for member in tar:
                name, _, number = member.name.partition(".gz.part")
                stream = tar.extractfile(member)
                assert stream is not None
                pieces[name.removesuffix(".gz")][int(number or 1)] = stream.read()
    found = {}
    for name, parts in pieces.items():
        with_all = b"".join(parts[number] for number in sorted(parts))
        try:
            found[name] = gzip.decompress(with_all)
        except EOFError:
            continue  # its last pieces did not fit
    return found


def kernels_by_range(report: bytes, folder: Path) -> Mapping[str, int]:
    """Count the kernels of a report by the NVTX ranges of their launches, in order."""
    from rooflens.ingest.reports.read import read_report  # noqa: PLC0415 - not every test of this module reads

    file = folder / "read.ncu-rep"
    file.write_bytes(report)
    return Counter(kernel.nvtx_range or "" for kernel in read_report(file, file.name).kernels)
