"""Kernel records of a CSV export: the same as of a report, made of what the export holds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens.ingest.exports.read import read_export
from rooflens.ingest.reports.results import RawResult, is_measured, is_wanted, to_kernel
from rooflens.model.records import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rooflens.ingest.exports.kernels import ExportedKernel
    from rooflens.model.records import Kernel


@dataclass(frozen=True, slots=True)
class Exported:
    """One export, read.

    Attributes:
        notes: What a user should know of how it was read.
    """

    run: Run
    kernels: tuple[Kernel, ...]
    notes: tuple[str, ...]


def read_exported(
    data: bytes,
    source: str,
    gpu: str | None = None,
    keep: Callable[[int, Mapping[str, float | str]], None] | None = None,
) -> Exported:
    """Read an export into kernel records.

    Args:
        data: The whole text, unpacked.
        source: The path as the user gave it.
        gpu: Display name of the GPU, for launches that do not name theirs.
        keep: Takes every value of each launch, by its position and by metric; without it only those are read that a
            kernel record is made of.

    Raises:
        InputError: This is no export, or one that cannot be read.
    """
    digest = hashlib.sha256(data).hexdigest()
    export = read_export(data, gpu, is_wanted if keep is None else lambda _: True)
    kernels = []
    processes: dict[str | None, None] = {}
    for found in export:
        if keep is not None:
            keep(found.index, {**found.numbers, **found.texts})
        processes.setdefault(found.process_name)
        kernels.append(to_kernel(_raw_result(found), digest, source, synthetic=False))
    process_name, *others = processes
    run = Run(
        digest=digest,
        source=source,
        file_bytes=len(data),
        kernel_count=len(kernels),
        synthetic=False,
        process_name=None if others else process_name,
    )
    return Exported(run, tuple(kernels), export.notes)


def _raw_result(found: ExportedKernel) -> RawResult:
    return RawResult(
        index=found.index,
        function_name=found.function_name,
        signature=found.signature,
        workload=found.workload,
        numbers=found.numbers,
        texts=found.texts,
        tables=found.tables,
        nan_count=sum(map(is_measured, found.not_numbers)),
        rules=tuple(found.rules),
        process=found.process,
        nvtx_range=found.nvtx_range,
    )
