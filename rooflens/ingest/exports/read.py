"""Entry point: text that ncu printed with `--csv` -> launches with values in base units by metric name."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from operator import itemgetter

from msgspec import Struct, field

from rooflens.errors import InputError
from rooflens.ingest.exports.foreign import refusal
from rooflens.ingest.exports.kernels import GPU_NAME, ExportedKernel
from rooflens.ingest.exports.long import long_kernels
from rooflens.ingest.exports.same import merged
from rooflens.ingest.exports.tables import Facts, open_text, records
from rooflens.ingest.exports.wide import wide_kernels
from rooflens.model.roofline.datasheets import Datasheet, datasheet_of, datasheet_of_id, load_datasheets

_CC = "device__attribute_compute_capability"
_OWN_PEAKS = ("pct_of_peak_sustained", "peak_sustained", "sol_pct")
"""Parts of the names of metrics that tell how near a unit is to its peak, on any GPU."""

_ONE_HEADER = b"Kernel Name"
_AGAIN = "export again with `ncu --import REPORT --page raw --csv --print-units base`"
_MOST_NAMED = 3


class Export(Struct):
    """The launches of one export, to be iterated once.

    Attributes:
        names_gpu: False if a launch does not name its GPU, and the user did not either.
        notes: What was left out or is not known, one sentence each; complete after the last launch.
    """

    _data: bytes
    _gpu: str | None
    _facts: Facts
    names_gpu: bool = True
    _has_peaks: bool = False
    _is_unknown: bool = False
    _capabilities: dict[str, None] = field(default_factory=dict)

    def __iter__(self) -> Iterator[ExportedKernel]:
        """Yield the launches in the order of the text.

        Raises:
            InputError: There are none; the table cannot be read; or the user named another GPU than it ran on.
        """
        count, known = 0, datasheet_of(self._gpu)
        try:
            for kernel in _kernels(self._data, self._facts):
                self._name_gpu(kernel, known)
                count += 1
                yield kernel
        except csv.Error as error:
            raise InputError(f"the table cannot be read: {error}", _AGAIN) from error
        if not count:
            raise refusal(self._data)
        if not self.names_gpu and not self._has_peaks:
            raise InputError(
                f"the export does not name its GPU{self._capability}, and holds no share of a peak: it has no roofs",
                self._gpu_hint(),
            )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know of how this was read."""
        said = self._facts.notes()
        if not self.names_gpu:
            said.append(f"the export does not name its GPU{self._capability}: `--gpu NAME` adds its published roofs")
        if self._is_unknown:
            said.append(f"no roofs are published for a `{self._gpu}`: `rooflens gpus` lists the names that have some")
        return tuple(said)

    @property
    def pct_digits(self) -> int:
        """To how many digits after the point its percentages are rounded."""
        return self._facts.style.pct_digits

    @property
    def _capability(self) -> str:
        known = [f"compute capability {one}" for one in self._capabilities]
        return f" ({', '.join(known)})" if known else ""

    def _gpu_hint(self) -> str:
        """Say how to name the GPU, with some that have its compute capability: several share each."""
        names = [gpu.names[0] for gpu in load_datasheets() if gpu.compute_capability in self._capabilities]
        some = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
        known = f"; those of compute capability {', '.join(self._capabilities)} are {some}" if names else ""
        return f"name it with --gpu, as `rooflens gpus` spells it{known}"

    def _name_gpu(self, kernel: ExportedKernel, known: Datasheet | None) -> None:
        """Set the GPU that the user named, where the launch names none; never guess one."""
        capability = _capability_of(kernel)
        if capability:
            self._capabilities.setdefault(capability)
        self._has_peaks = self._has_peaks or any(map(_is_share, kernel.numbers))
        if GPU_NAME in kernel.texts:
            return
        if self._gpu is None:
            self.names_gpu = False
            return
        self._is_unknown = known is None
        if known and capability and known.compute_capability != capability:
            raise InputError(
                f"ran on a GPU of compute capability {capability}; {self._gpu} has {known.compute_capability}",
                "name the GPU that it ran on with --gpu",
            )
        kernel.texts[GPU_NAME] = self._gpu


def read_export(data: bytes, gpu: str | None = None, is_wanted: Callable[[str], bool] = lambda _: True) -> Export:
    """Read a CSV export of Nsight Compute.

    Args:
        data: The file, or what came from a pipe; it may hold whatever else ncu and the program printed.
        gpu: Short or display name of the GPU, for launches that do not name theirs.
        is_wanted: Says which metrics are read; all of them by default.
    """
    return Export(data, gpu and _displayed(gpu), Facts(is_wanted))


def _displayed(gpu: str) -> str:
    """Return the display name of a GPU given by its short name; any other name as it is."""
    known = datasheet_of_id(gpu)
    return known.names[0] if known else gpu


def _kernels(data: bytes, facts: Facts) -> Iterator[ExportedKernel]:
    """Yield the launches of every table."""
    tables = _tables(data, facts)
    if data.count(_ONE_HEADER) > 1:
        yield from merged(tables)
        return
    for index, kernel in enumerate(chain.from_iterable(tables)):
        kernel.index = index
        yield kernel


def _tables(data: bytes, facts: Facts) -> Iterator[Iterable[ExportedKernel]]:
    """Yield the launches of each table; those of one must be consumed before the next."""
    for header, table in groupby(records(open_text(data), facts), itemgetter(0)):
        if header.is_summary:
            raise InputError("a summary over launches (`--print-summary`): each launch is needed", _AGAIN)
        read = long_kernels if header.is_long else wide_kernels
        yield read(header, (cells for _, cells in table if cells is not None), facts)


def _is_share(metric: str) -> bool:
    """Return whether a metric tells how near a unit is to its peak, on any GPU; occupancy does not."""
    return "warps" not in metric and any(part in metric for part in _OWN_PEAKS)


def _capability_of(kernel: ExportedKernel) -> str | None:
    major, minor = kernel.numbers.get(f"{_CC}_major"), kernel.numbers.get(f"{_CC}_minor")
    return None if major is None or minor is None else f"{major:.0f}.{minor:.0f}"
