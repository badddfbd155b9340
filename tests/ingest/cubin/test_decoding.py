"""Hold what is read of the bits of instructions to NVIDIA's text of them."""

from __future__ import annotations

import csv
from pathlib import Path

from support.held_to_text import differences

from rooflens.ingest.cubin.decoding import decode, is_known


def test_bits_say_what_the_disassembler_says() -> None:
    """Over 300 instructions of seven GPUs, as nvdisasm writes them: flow, registers, widths, shapes and types."""
    with (Path(__file__).parent / "instructions.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) > 300
    wrong = [
        found
        for row in rows
        for found in differences(int(row["offset"]), bytes.fromhex(row["code"]), int(row["capability"]), row["text"])
    ]
    assert not wrong, "\n".join(wrong)


def test_what_no_row_names_is_unknown() -> None:
    """An operation without a number in the table has no opcode, and one that came later is none before."""
    assert decode(0, (0x0FF).to_bytes(16, "little"), 90).opcode == ""
    adds = (0x235).to_bytes(16, "little")
    assert [decode(0, adds, capability).base for capability in (90, 120)] == ["HFMA2", "IADD"]
    assert [is_known(capability) for capability in (60, 70, 121, 130)] == [False, True, True, False]
