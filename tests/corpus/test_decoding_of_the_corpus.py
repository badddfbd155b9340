"""Hold what is read of the machine code of public reports to NVIDIA's disassembler, instruction by instruction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.held_to_text import differences
from support.nvdisasm import texts_of

from rooflens.errors import InputError
from rooflens.ingest.cubin.budget import CodeBudget
from rooflens.ingest.cubin.elf import Cubin
from rooflens.ingest.messages.messages import decode as decode_message
from rooflens.ingest.reports.container import outline
from rooflens.ingest.reports.read import opened

pytestmark = pytest.mark.corpus

_LEAST_CAPABILITY = 75
"""The disassembler knows no older GPUs any more."""
_LARGEST_CUBIN_BYTES = 200_000


def _functions(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the GPU and the code of each function of a report."""
    with opened(file) as (data, digest):
        for start, end in outline(data, digest, file.suffix).sources:
            message = decode_message("SourceData", data[start:end])
            if message is None or not 0 < len(message.Binary) < _LARGEST_CUBIN_BYTES:
                continue
            try:
                cubin = Cubin(message.Binary, CodeBudget())
            except ValueError:
                continue  # an older form of code
            for name in cubin.functions():
                if (section := cubin.code(name)) is not None:
                    yield cubin.capability, cubin.bytes_of(section, 0, section.end - section.start)


def test_bits_say_what_the_disassembler_says_of_public_code(corpus: Path, tmp_path: Path) -> None:
    """Every instruction of every function, whether it ran or not."""
    wrong, seen, count = [], set(), 0
    for file in sorted(corpus.glob("*.ncu-rep")):
        try:
            functions = set(_functions(file)) - seen
        except InputError:
            continue  # no report
        seen |= functions
        for capability, code in functions:
            if capability < _LEAST_CAPABILITY:
                continue
            for offset, text in texts_of(code, capability, tmp_path / "code.bin"):
                count += 1
                wrong += differences(offset, code[offset : offset + 16], capability, text)
    assert count > 10_000
    assert not wrong, f"{len(wrong)} of {count}\n" + "\n".join(wrong[:40])
