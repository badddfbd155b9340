"""Entry point: read ncu's output, as CSV or as text for people, into launches with values in base units."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter

from msgspec import Struct, field

from rooflens.errors import InputError, UnknownNameError
from rooflens.files import TEXT_HEAD_BYTES
from rooflens.format import GUESSED, some
from rooflens.format import count as count_of
from rooflens.ingest.exports.foreign import refusal
from rooflens.ingest.exports.guess import Guess, capability_of, guess_gpu
from rooflens.ingest.exports.kernels import GPU_NAME, ExportedKernel
from rooflens.ingest.exports.long import long_kernels
from rooflens.ingest.exports.objects import is_counters, object_kernels
from rooflens.ingest.exports.same import assembled, merged, once
from rooflens.ingest.exports.tables import ExportFacts, is_export, lines_of, open_text, records
from rooflens.ingest.exports.text import HEADER, is_text, text_rows
from rooflens.ingest.exports.wide import wide_kernels
from rooflens.model.counters.memory import SM_COUNTS
from rooflens.model.roofline.datasheets import Datasheet, datasheet_of, matching_datasheets

_OF_OCCUPANCY = ("launch__occupancy", "launch__waves", "sm__warps_active", "sm__maximum_warps")
_PEAK_SUBMETRICS = ("pct_of_peak_sustained", "peak_sustained", "sol_pct")
"""Parts of metric names that say how near a unit is to its peak, whatever the GPU."""

_OF_ACCESSES = (
    *("l1tex__t_sectors_pipe_lsu_mem_global", "l1tex__average_t_sectors_per_request", "l1tex__data_bank_conflicts"),
    *("smsp__sass_average_data_bytes_per", "smsp__thread_inst_executed_per_inst_executed"),
)
"""Begins of the names of metrics that tell what accesses and warps do in vain, on any GPU."""

_ONE_HEADER = b"Kernel Name"
_AGAIN = "export again with `ncu --import REPORT --page raw --csv --print-units base`"
_MOST_NAMED = 3
_MESSAGES = tuple("==PROF== Profiling".encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be"))
_PROFILED = re.compile(r'[\s\ufeff]*==PROF== Profiling (".*"|\S+) - (\d+)\b')


class Export(Struct):
    """The launches of an export, which can be iterated once.

    Attributes:
        names_gpu: False if neither a launch nor the user names its GPU.
        is_text: It is what ncu prints on a terminal, not a table.
        notes: What was left out or is unknown, a sentence each; complete after the last launch.
    """

    _data: bytes
    _gpu: str | None
    _facts: ExportFacts
    is_text: bool = False
    _gpu_option: str = "--gpu"
    names_gpu: bool = True
    _guess: Guess = field(default_factory=Guess)
    _opens: bool = False
    _is_unknown: bool = False
    _capabilities: dict[str, None] = field(default_factory=dict)
    _incomplete: list[str] = field(default_factory=list)
    _absent: int = 0

    def __iter__(self) -> Iterator[ExportedKernel]:
        """Yield the launches in file order.

        Raises:
            InputError: There are no launches, the table is unreadable, or the user named the wrong GPU.
        """
        count, known = 0, datasheet_of(self._gpu)
        try:
            for kernel in self._with_gpu_names(_exported_kernels(self._data, self._facts, is_text=self.is_text), known):
                count += 1
                if kernel.lost is not None:
                    self._incomplete.append(f"`{kernel.function_name}` ({kernel.lost})")
                yield kernel
        except csv.Error as error:
            raise InputError(f"the table cannot be read: {error}", _AGAIN) from error
        if not count:
            raise refusal(self._data)
        # A row of a summary stands for many launches, so the counts cannot be compared.
        self._absent = 0 if self._facts.merged else max(0, self._announced() - count)
        if not self.names_gpu and not self._opens:
            raise InputError(
                f"the export does not name its GPU{self._capability}, and has no share of a peak, so it has no roofs",
                self._gpu_hint(),
            )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about how the export was read."""
        said = self._facts.notes()
        if self._guess.is_sure:
            name = self._guess.likely[0].name
            said.append(f"GPU guessed: {name}, from {self._guess.words}; `{self._gpu_option} NAME` to set it")
        elif not self.names_gpu:
            likely = f"; likely {self._likely()}" if len(self._guess.clues) > 1 else ""
            roofs = f"`{self._gpu_option} NAME` adds its published roofs{likely}"
            said.append(f"the export does not name its GPU{self._capability}: {roofs}")
        if self._is_unknown:
            said.append(f"no roofs are published for `{self._gpu}`: `rooflens gpus` lists the names that have some")
        return tuple(said)

    @property
    def loss(self) -> InputError | None:
        """What is missing because the file was cut; None if nothing is. Complete after the last launch."""
        hint = "it was cut: export it again, or copy all of it"
        lost = [*self._incomplete, *(f"`{name}` (only its name is there)" for name in self._facts.empty)]
        absent = f"{count_of(self._absent, 'launch')} missing that ncu announced" if self._absent else ""
        if not lost:
            return InputError(absent, hint) if absent else None
        named = ", ".join(lost[:_MOST_NAMED]) + (f" and {len(lost) - _MOST_NAMED} more" if lost[_MOST_NAMED:] else "")
        incomplete = f"{count_of(len(lost), 'kernel')} not complete: {named}"
        return InputError("; ".join(filter(None, (absent, incomplete))), hint)

    def _announced(self) -> int:
        """Count the launches that ncu's messages announce, each once; 0 if the messages were not copied."""
        if not any(message in self._data for message in _MESSAGES):  # decoding a large table again is slow
            return 0
        return len({found.groups() for line in open_text(self._data) if (found := _PROFILED.match(line))})

    @property
    def pct_digits(self) -> int:
        """Digits after the decimal point that its percentages are rounded to."""
        return self._facts.style.pct_digits

    @property
    def _capability(self) -> str:
        known = [f"compute capability {one}" for one in self._capabilities]
        return f" ({', '.join(known)})" if known else ""

    def _likely(self) -> str:
        return some(gpu.name for gpu in self._guess.likely)

    def _gpu_hint(self) -> str:
        """Say how to name the GPU, and which GPUs are likely: several share a compute capability."""
        those = f"those of compute capability {', '.join(self._capabilities)} are"
        if len(self._guess.clues) > 1:
            those = f"likely, from {self._guess.words}:"
        known = f"; {those} {self._likely()}" if self._guess.likely else ""
        return f"name it with {self._gpu_option}, as `rooflens gpus` spells it{known}"

    def _with_gpu_names(self, kernels: Iterator[ExportedKernel], sheet: Datasheet | None) -> Iterator[ExportedKernel]:
        """Fill in missing GPU names from the user, else with the only GPU that fits all launches."""
        noted = map(self._noted, kernels)
        for kernel in noted:
            if GPU_NAME in kernel.texts:
                yield kernel
            elif self._gpu is None:
                self.names_gpu = False
                yield from self._guessed([kernel, *noted])
            else:
                self._is_unknown = sheet is None
                capability = capability_of(kernel)
                if sheet and capability and sheet.compute_capability != capability:
                    raise InputError(
                        f"ran on a GPU of compute capability {capability}; {self._gpu} has {sheet.compute_capability}",
                        f"name the GPU that it ran on with {self._gpu_option}",
                    )
                kernel.texts[GPU_NAME] = self._gpu
                yield kernel

    def _noted(self, kernel: ExportedKernel) -> ExportedKernel:
        """Note a launch's compute capability, and whether it tells something without its GPU."""
        if capability := capability_of(kernel):
            self._capabilities.setdefault(capability)
        self._opens = self._opens or bool(kernel.rules) or any(map(_is_telling, kernel.numbers))
        return kernel

    def _guessed(self, kernels: Sequence[ExportedKernel]) -> Sequence[ExportedKernel]:
        """Fill in the GPU of launches that lack it, if exactly one fits and all ran on one device; else its SMs."""
        nameless = [kernel for kernel in kernels if GPU_NAME not in kernel.texts]
        if len({kernel.numbers.get("launch__device_id") for kernel in nameless}) == 1:
            self._guess = guess_gpu(nameless)
        if self._guess.is_sure:
            for kernel in nameless:
                kernel.texts[GPU_NAME] = f"{self._guess.likely[0].name}{GUESSED}"
        elif self._guess.sm_count is not None:
            for kernel in nameless:
                if not any(name in kernel.numbers for name in SM_COUNTS):
                    kernel.numbers[SM_COUNTS[0]] = float(self._guess.sm_count)
        return kernels


def is_printed(head: bytes) -> bool:
    """Return whether a file is ncu's output: CSV, text for people, or JSON of its counters; by its first bytes."""
    return is_export(head) or is_text(head) or is_counters(head)


def read_export(
    data: bytes,
    gpu: str | None = None,
    is_wanted: Callable[[str], bool] = lambda _: True,
    *,
    gpu_option: str = "--gpu",
    on_read: Callable[[float], None] = lambda _: None,
) -> Export:
    """Read a CSV export of Nsight Compute, its printed text, or JSON of its counters.

    Args:
        data: The file, or what came from a pipe; other output of ncu and the program may surround it.
        gpu: Short or display name of the GPU, for launches that do not name theirs.
        is_wanted: Whether to read a metric; by default all are read.
        gpu_option: The option that names the GPU, for notes and hints.
        on_read: Called with parts of the text as they are read.
    """
    is_csv = is_export(data[:TEXT_HEAD_BYTES])
    printed = not is_csv and is_text(data[:TEXT_HEAD_BYTES])
    return Export(
        data, gpu and displayed(gpu), ExportFacts(is_wanted, on_read), is_text=printed, _gpu_option=gpu_option
    )


def displayed(gpu: str) -> str:
    """Return the display name for a GPU's name or a part of it; unknown names are returned as they are.

    Raises:
        InputError: Several GPUs match the name.
    """
    try:
        known, *others = matching_datasheets(gpu)
    except UnknownNameError:
        return gpu
    if others:
        ids = ", ".join(one.id for one in (known, *others))
        raise InputError(f"`{gpu}` matches {len(others) + 1} GPUs", f"choose one of: {ids}")
    return known.names[0]


def _exported_kernels(data: bytes, facts: ExportFacts, *, is_text: bool) -> Iterator[ExportedKernel]:
    """Yield each launch once, from a text, from JSON, or from all tables."""
    if is_counters(data[:TEXT_HEAD_BYTES]):
        return object_kernels(data, facts)
    if is_text:
        return once(assembled(long_kernels(HEADER, text_rows(data, facts), facts)), facts, has_ids=False)
    tables = _tables(data, facts)
    kernels = merged(tables) if data.count(_ONE_HEADER) > 1 else chain.from_iterable(tables)
    return once(kernels, facts, has_ids=True)


def _tables(data: bytes, facts: ExportFacts) -> Iterator[Iterable[ExportedKernel]]:
    """Yield the launches of each table; consume a table before asking for the next."""
    for header, table in groupby(records(lines_of(data, facts), facts), itemgetter(0)):
        read = long_kernels if header.is_long else wide_kernels
        yield read(header, (cells for _, cells in table if cells is not None), facts)


def _is_telling(metric: str) -> bool:
    """Return whether a metric is useful without the GPU's peaks: a share of a peak, occupancy, or waste."""
    return metric.startswith((*_OF_OCCUPANCY, *_OF_ACCESSES)) or any(part in metric for part in _PEAK_SUBMETRICS)
