"""What a kernel already does, so that no move advises it again: one record, made once, each field from its best source.

A field that nothing tells is None: not measured is not "no".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from msgspec import Struct

from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.findings.loops import loops_of, main_product, share_of
from rooflens.model.records import Does, Kernel, mapping_of
from rooflens.model.roofline.flops import has_matrix_work, has_newer_instruction
from rooflens.model.roofline.opcodes import COPIES, WORD_BYTES, is_matrix, is_newest_product, is_tcgen05, tensor_op

_CODE, _OPCODES, _COUNTERS, _LAUNCH = "machine code", "opcode counts", "counters", "launch"
_WIDTH = re.compile(r"\.(?:U\.)?(128|64)\b")
_SHUFFLES = ("SHFL", "REDUX", "CREDUX")
_ATOMICS = ("ATOM", "RED.", "REDG", "ATOMG", "ATOMS")


class _Fields(Struct):
    """Fields as they become known, and the source of each."""

    fields: dict[str, object]
    sources: dict[str, str]

    def tell(self, name: str, value: object, source: str) -> None:
        """Record a value unless it is unknown or a better source already gave it."""
        if value is not None and name not in self.fields:
            self.fields[name], self.sources[name] = value, source


def find_what_it_does(kernel: Kernel) -> Does:
    """Record what a kernel does, from machine code, then opcode counts, counters and the launch."""
    told = _Fields({}, {})
    _by_code(told, kernel)
    if kernel.warp_opcodes:
        _by_opcodes(told, kernel, {code: count for code, count in kernel.warp_opcodes.items() if count})
    _by_counters(told, kernel)
    return Does(sources=mapping_of(tuple(told.sources.items())), **told.fields)  # type: ignore[arg-type]


def _by_code(fields: _Fields, kernel: Kernel) -> None:
    by_share = sorted(loops_of(kernel.inside), key=partial(share_of, kernel.inside), reverse=True)
    bodies = [loop.anatomy for loop in by_share if loop.anatomy is not None]
    # What an epilogue stages is not what the products wait for.
    staged = [body for body in bodies if body.stages is not None]
    if longest := next((body for body in staged if body.is_matrix), next(iter(staged), None)):
        fields.tell("stages", longest.stages, _CODE)
        fields.tell("waits_for_oldest", bool(longest.groups_left), _CODE)
    fields.tell(
        "products_left", next((one.products_left for one in bodies if one.products_left is not None), None), _CODE
    )
    body = main_product(kernel.inside)
    if body is None:
        return
    fields.tell("results", body.results, _CODE)
    widths = {width: count for width, count in body.global_loads.items() if count}
    fields.tell("load_bytes", max(widths, default=None), _CODE)


def _by_opcodes(fields: _Fields, kernel: Kernel, opcodes: Mapping[str, int]) -> None:
    copies = tuple(name for code, name in COPIES.items() if any(one.startswith(code) for one in opcodes))
    fields.tell("copies", copies, _OPCODES)
    fields.tell("products", _products(opcodes), _OPCODES)
    fields.tell("specialised", any(one.startswith("USETMAXREG") for one in opcodes), _OPCODES)
    ways = (("shuffles", _SHUFFLES), ("barriers", ("BAR.", "BAR")), ("atomics", _ATOMICS))
    fields.tell(
        "reduces_by", tuple(way for way, codes in ways if any(one.startswith(codes) for one in opcodes)), _OPCODES
    )
    loads = [one for one in opcodes if one.startswith(("LDG", "LD."))]
    widths = [int(found[1]) // 8 if (found := _WIDTH.search(one)) else WORD_BYTES for one in loads]
    fields.tell("load_bytes", max(widths, default=None), _OPCODES)
    is_older = any(map(is_matrix, opcodes)) and not any(map(is_newest_product, opcodes))
    fields.tell("older_products", has_newer_instruction(kernel) and is_older, _OPCODES)


def _products(opcodes: Mapping[str, int]) -> str:
    """Name what multiplies, and its type: `mma.sync bf16`, `wgmma fp16`, `FMA fp32`; empty if nothing does."""
    if any(map(is_tcgen05, opcodes)):
        return "tcgen05"
    matrix = {code: count for code, count in opcodes.items() if is_matrix(code)}
    if matrix:
        most = max(matrix, key=matrix.__getitem__)
        found = tensor_op(most)
        how = "wgmma" if is_newest_product(most) else "mma.sync"
        return f"{how} {found.dtype}" if found else how
    scalar = {
        name: sum(n for code, n in opcodes.items() if code.startswith(name)) for name in ("FFMA", "DFMA", "HFMA2")
    }
    most = max(scalar, key=scalar.__getitem__)
    return {"FFMA": "FMA fp32", "DFMA": "FMA fp64", "HFMA2": "FMA fp16"}[most] if scalar[most] else ""


def _by_counters(fields: _Fields, kernel: Kernel) -> None:
    counters = kernel.counters
    if "products" not in fields.fields and has_matrix_work(kernel):
        fields.tell("products", "tensor cores", _COUNTERS)
    own = kernel.program_smem_bytes
    fields.tell("tile_bytes", own, _LAUNCH)
    fields.tell("registers", counters.get("registers_per_thread"), _LAUNCH)
    lanes = counters.get("threads_per_inst")
    fields.tell("lanes", None if lanes is None else min(float(WARP_THREADS), lanes), _COUNTERS)
    blocks, sms, waves = (counters.get(name) for name in ("grid_size", "sm_count", "waves"))
    is_whole = blocks is not None and bool(sms) and blocks % (sms or 1.0) == 0 and (waves or 2.0) <= 1
    fields.tell("persistent", is_whole or None, _LAUNCH)
