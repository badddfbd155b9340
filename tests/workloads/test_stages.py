"""In how many stages kernels keep their tiles, as their sources say: read from what nvcc makes of the last rungs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooflens.errors import EnvironmentMissingError
from rooflens.ingest.cubin.budget import CodeBudget
from rooflens.ingest.cubin.decoding import decode
from rooflens.ingest.cubin.elf import Cubin
from rooflens.ingest.cubin.mbarriers import with_mbarriers
from rooflens.model.inside.code import MachineCode
from rooflens.model.inside.instruction import INSTRUCTION_BYTES
from rooflens.model.inside.look import look_inside
from rooflens.model.records import Anatomy, Inside
from rooflens.workloads.build import FLAGS, find_compiler

pytestmark = pytest.mark.nvcc

_MULTISTAGE, _WGMMA = "gemm_ladder/10_multistage", "gemm_ladder/11_wgmma"
_LADDERS = Path(__file__).parents[2] / "rooflens" / "workloads"


def _inside(rung: str, architecture: str, folder: Path) -> Iterator[tuple[str, Inside]]:
    """Compile a rung and yield each of its kernels, as if a warp had run each instruction and waited for it."""
    try:
        compiler = find_compiler()
    except EnvironmentMissingError as error:
        pytest.skip(str(error))
    file, cubin = folder / "rungs.cu", folder / "rungs.cubin"
    file.write_text(f'#include "{rung}.cuh"\n', encoding="utf-8")
    command = [compiler.path, *FLAGS, "-cubin", f"-arch={architecture}", "-I", _LADDERS, file, "-o", cubin]
    subprocess.run(list(map(str, command)), check=True, capture_output=True, timeout=300)  # noqa: S603
    whole = Cubin(cubin.read_bytes(), CodeBudget())
    for name in whole.functions():
        section = whole.code(name)
        if section is None or Path(rung).name.encode() not in name:
            continue
        code = whole.bytes_of(section, 0, section.end - section.start)
        words = [code[at : at + INSTRUCTION_BYTES] for at in range(0, len(code), INSTRUCTION_BYTES)]
        read = [decode(number * INSTRUCTION_BYTES, word, whole.capability) for number, word in enumerate(words)]
        instructions = with_mbarriers(read, words, whole.capability)
        each = {one.offset: 1.0 for one in instructions}
        waits = {f"stall_{reason}": each for reason in ("long_scoreboard", "short_scoreboard", "gmma")}
        yield name.decode(), look_inside(MachineCode(instructions, [0], {"warp_inst": each, **waits}))


def _products(inside: Inside) -> Anatomy:
    """Return the body of the loop with most products."""
    bodies = [loop.anatomy for loop in inside.loops if loop.anatomy is not None]
    return max(bodies, key=lambda body: body.multiply_adds)


def test_stages_are_those_of_the_source(tmp_path: Path) -> None:
    """Rung 10 has as many as its template says, by groups of `cp.async`; rung 11 four, by mbarriers; attention two."""
    stages = {name.partition("ILi")[2][:1]: _products(one) for name, one in _inside(_MULTISTAGE, "sm_90a", tmp_path)}
    assert {name: (body.stages, body.groups_left) for name, body in stages.items()} == {
        str(count): (count, count - 2) for count in (2, 3, 4)
    }
    ((_, inside),) = _inside(_WGMMA, "sm_90a", tmp_path)
    body = _products(inside)
    assert (body.stages, body.groups_left, body.products_left) == (4, 3, 1)
    attention = [_products(one).stages for _, one in _inside("attention_ladder/03_tensor_core", "sm_80", tmp_path)]
    assert set(attention) == {2}


def test_waits_at_mbarriers_and_for_products_name_what_they_wait_for(tmp_path: Path) -> None:
    """In rung 11 consumers wait for the five copies of a stage, the producer for who frees it, both for no other."""
    ((_, inside),) = _inside(_WGMMA, "sm_90a", tmp_path)
    at_barriers = [[wait for wait in waits if wait.how == "mbarrier"] for waits in inside.waits.values()]
    found = {(wait.opcode, len({one.pc for one in waits})) for waits in at_barriers for wait in waits}
    assert found == {("UTMALDG", 5), ("SYNCS", 2)}
    products = {wait.opcode for waits in inside.waits.values() for wait in waits if wait.reason == "gmma"}
    assert products == {"HGMMA"}
