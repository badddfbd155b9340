"""Hold what is read of an instruction's bits to NVIDIA's text of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from support.sass_text import parse

from rooflens.ingest.cubin.decoding import decode
from rooflens.ingest.cubin.mbarriers import with_mbarriers
from rooflens.model.inside.instruction import Instruction
from rooflens.model.roofline.opcodes import opcode_group, tensor_op, thread_flop

_OPCODE = re.compile(r"^(?:@\S+ )?\S+")
_REGISTER = re.compile(r"(?<![\w.])R(\d+)")
_ONE_NAME = {"CGAERRBAR": "ERRBAR", "UCGABAR_WAIT": "UCGABAR_ARV"}
"""Operations with one number, of which nothing depends on which it is."""
_IN_MEMORY = frozenset({"global load", "global store", "shared load", "shared store", "local", "constant load"})


def differences(offset: int, code: bytes, capability: int, text: str) -> Iterator[str]:
    """Yield what is read of the bits that the text says otherwise.

    Args:
        offset: Of the instruction, which the targets in the text count from, too.
        code: Its 16 bytes.
        capability: Of the GPU: 90 for 9.0.
        text: What NVIDIA's disassembler says.
    """
    theirs = parse(offset, text, code)
    ours, _ = with_mbarriers(
        [decode(offset, code, capability), Instruction(0, base="SYNCS")], [code, bytes(16)], capability
    )
    for name, one, other in zip(_NAMES, _facts(ours), _facts(theirs), strict=True):
        if one != other and not (name == "target" and _is_elsewhere(text)):
            yield f"{capability} {text}: {name} {one}, not {other}"
    # Of a sparse product the text names the register of its pattern, too.
    operands = _OPCODE.sub("", text.partition(", R2, 0x0")[0] if ".SP." in text else text)
    named = {int(number) for number in _REGISTER.findall(operands)}
    found = {number for number in ours.writes | ours.reads if number >= 0}
    lone = {number for number in found - named if number - 1 not in found}
    if lacking := (named - found) or lone:
        yield f"{capability} {text}: registers {sorted(found)}, for {sorted(lacking)}"


_NAMES = (
    *("operation", "condition", "never runs", "target", "falls through", "barrier", "adds to", "step", "constant"),
    *("indexed constant", "kind", "purpose", "operations", "products", "width", "first result", "groups"),
    *("groups of products", "end of a group", "sum", "mbarrier"),
)


def _facts(one: Instruction) -> tuple[Any, ...]:
    return (
        _ONE_NAME.get(one.base, one.base),
        one.is_conditional,
        one.never_runs,
        one.target,
        one.may_fall_through,
        one.barrier,
        one.adds_to,
        one.step,
        one.loads_constant,
        one.is_indexed_constant,
        one.kind,
        opcode_group(_ONE_NAME.get(one.base, one.opcode)),
        thread_flop(one.opcode),
        tensor_op(one.opcode),
        one.width_bytes if one.kind in _IN_MEMORY else None,
        min((number for number in one.writes if number >= 0), default=None),
        one.leaves_groups,
        one.leaves_products,
        one.closes_products,
        one.sums,
        one.mbarrier,
    )


def _is_elsewhere(text: str) -> bool:
    """Return whether a call goes to an address that its bits do not hold."""
    return "CALL.ABS" in text or re.search(r"CALL\.REL\S* R\d", text) is not None
