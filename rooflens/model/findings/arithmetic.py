"""Findings about arithmetic: operations that could be fused, slow double precision, unused tensor cores."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rooflens.format import factor, percent, si, si_of
from rooflens.model.findings.cost import LATENCY, MOST_SPARED, Waste, spared, weigh
from rooflens.model.findings.rule import FindingDraft, FindingRule
from rooflens.model.hotspots import places
from rooflens.model.records import Evidence, ratio
from rooflens.model.roofline.mix import mix_of
from rooflens.model.roofline.opcodes import FP64_DIVISION_INST, executed, opcode_group
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.narrower import could_use_tensor_cores, peak_of, roofs_over_fp32

_PIPES: Mapping[str, tuple[str, ...]] = {"fp32": ("fp32", "fma"), "fp64": ("fp64", "fp64_pipe")}
_BESIDE: Mapping[str, tuple[str, ...]] = {
    "fp32": ("IMAD", "IMUL", "HADD2", "HMUL2", "HFMA2"),
    "fp64": ("DSETP", "DMNMX", "DMMA"),
}
"""What else goes through the pipe of a precision."""

_FP64_SEEDS = ("MUFU.RCP64H", "MUFU.RSQ64H")


def unfused_arithmetic(facts: Facts) -> FindingDraft | None:
    """Say that additions and multiplications are issued separately where one instruction could do both."""
    limit, opcodes, unfused = facts.limits.little_share, facts.kernel.thread_opcodes, []
    for dtype, (own, pipe) in _PIPES.items():
        mix = mix_of(facts.kernel, dtype)
        if mix is None:
            continue
        parts = {own: 1.0}  # its arithmetic's share of its pipes' work; of a shared pipe only if counted
        if opcodes:
            beside = sum(n for opcode, n in opcodes.items() if opcode.partition(".")[0].startswith(_BESIDE[dtype]))
            parts[pipe] = mix.total / (mix.total + beside)
        elif dtype != "fp32":
            parts[pipe] = 1.0
        apart = mix.apart / mix.total / 2
        busy = max(facts.shares.get(name, 0.0) * part for name, part in parts.items())
        if apart > limit and (mix.sparable >= limit / 2 or apart * busy >= limit):
            unfused.append((mix, Waste({name: mix.sparable * part for name, part in parts.items()})))
    if not unfused:
        return None
    mix, waste = max(unfused, key=lambda pair: spared(facts, pair[1]))
    return FindingDraft(
        evidence=(
            Evidence("sparable_share", mix.sparable, "share", f"min(add, mul) / all: {mix.source}"),
            Evidence("unfused", mix.apart, "instructions", mix.source),
            Evidence("unfused_share", mix.apart / mix.total, "share", mix.source),
        ),
        move=f"fuse additions and multiplications: {si_of(mix.apart, 'instructions')}, "
        f"{percent(mix.apart / mix.total)} of the {mix.dtype} arithmetic, only add or multiply, and fusing pairs saves "
        f"up to {percent(mix.sparable)} of it",
        waste=waste,
        changes="instructions",
        confidence="medium",
    )


def fp64_divisions(facts: Facts) -> FindingDraft | None:
    """Say that much of the fp64 arithmetic is divisions and square roots."""
    divisions = sum(n for opcode, n in facts.kernel.thread_opcodes.items() if opcode.startswith(_FP64_SEEDS))
    mix = mix_of(facts.kernel, "fp64") if divisions else None
    if mix is None:
        return None
    part = min(1.0, divisions * FP64_DIVISION_INST / mix.total)
    if part < facts.limits.limiting_waste_share:
        return None
    waste = Waste(dict.fromkeys(_PIPES["fp64"], part * (1 - 1 / FP64_DIVISION_INST)))
    source = "thread instructions by opcode"
    return FindingDraft(
        evidence=(
            Evidence("divisions", float(divisions), "operations", source),
            Evidence(
                "division_share", part, "share", f"{FP64_DIVISION_INST} x divisions / fp64 instructions: {source}"
            ),
        ),
        move=f"compute reciprocals once and multiply by them: {si_of(divisions, 'fp64 divisions and roots')} make up "
        f"at least {percent(part)} of the fp64 instructions",
        waste=waste,
        changes="instructions",
    )


_SLOW_FP64 = 4
"""Chips for HPC do fp64 at 1/2 of fp32, the others at 1/32 or 1/64."""


def slow_fp64(facts: Facts) -> FindingDraft | None:
    """Say that the kernel does fp64 arithmetic on a chip with few fp64 units."""
    work = facts.pipes.get("fp64")
    counted = work.amount if work is not None else None
    busy = {name: share for name in _PIPES["fp64"] if (share := facts.shares.get(name))}
    top = max(busy, key=lambda one: busy[one], default=None)
    if counted == 0 or (counted is None and (top is None or busy[top] < facts.limits.contributing_share)):
        return None
    fp64, fp32 = (peak_of(facts.kernel, facts.pipes, dtype) for dtype in ("fp64", "fp32"))
    if fp64 and fp32:
        slower = Evidence("fp64_slower", fp32 / fp64, "x", "fp32 peak / fp64 peak")
    elif facts.counter("fp64_slower_factor"):
        slower = facts.measured("fp64_slower", "x", "fp64_slower_factor")
    else:
        return None
    if slower.value < _SLOW_FP64:
        return None
    waste = Waste(dict.fromkeys(_PIPES["fp64"], 1 - 1 / slower.value))
    evidence = [slower]
    amount = "fp64 runs"
    if work is not None and counted is not None:
        evidence.insert(0, Evidence("fp64_flop", counted, "FLOP", work.source))
        amount = f"{si(counted, 'FLOP')} of fp64 run"
    said = f"{amount} at a rate {factor(slower.value)} lower than fp32's"
    if top is not None:
        evidence.append(Evidence("fp64_busy_share", busy[top], "share", facts.pipes[top].source))
        keep = "keep their" if counted is not None else "keeps its"
        said = f"{said} and {keep} pipe {percent(busy[top])} busy"
    severity = weigh(facts, waste)
    full = top is not None and busy[top] >= facts.limits.bound_share
    return FindingDraft(
        evidence=tuple(evidence),
        move=f"use fp32 where accuracy allows: {said}; a literal without `f` turns a whole expression into double",
        waste=waste,
        changes="types",
        severity="contributes" if full and severity == "note" else severity,
    )


def tensor_cores_unused(facts: Facts) -> FindingDraft | None:
    """Say that work that looks like a matrix product fills the fp32 pipe of a chip whose tensor cores are unused."""
    busy = facts.shares.get("fp32")
    if busy is None or not could_use_tensor_cores(facts.kernel, facts.pipes, facts.limits):
        return None
    roofs = roofs_over_fp32(facts)
    if not roofs:
        return None
    dtype = "tf32" if "tf32" in roofs else max(roofs, key=roofs.__getitem__)
    name = "TF32" if dtype == "tf32" else dtype
    return FindingDraft(
        evidence=(
            Evidence("fp32_share", busy, "share", facts.pipes["fp32"].source),
            Evidence("tensor_roof_over_fp32", roofs[dtype], "x", f"tensor_{dtype} peak / fp32 peak"),
        ),
        move=f"move it to the tensor cores if it is a matrix product and {name} is accurate enough: it does "
        f"{percent(busy)} of the fp32 peak without them, and the {name} roof is {factor(roofs[dtype])} as high",
        bears_on=frozenset({"fp32", "fma", "issue"}),
        confidence="medium",
        severity="contributes",
    )


def debug_build(facts: Facts) -> FindingDraft | None:
    """Say that the code looks as if it was compiled without optimisation."""
    opcodes = facts.kernel.warp_opcodes
    every = sum(opcodes.values())
    if not every:
        return None
    moves, local = executed(opcodes, ("MOV", "MOV32I")) / every, executed(opcodes, ("LDL", "STL")) / every
    if moves < facts.limits.contributing_share or local < facts.limits.negligible_share:
        return None
    source = "sass__inst_executed_per_opcode_with_modifier_all"
    return FindingDraft(
        evidence=(Evidence("moves", moves, "share", source), Evidence("local memory", local, "share", source)),
        move=f"profile a release build, as this looks like one with `-G`: {percent(moves)} of its instructions move "
        f"registers, {percent(local)} go to local memory",
        severity="limiter",
    )


_OF_AN_INTEGER_DIVISION: Mapping[str, int] = {"issue": 15, "alu": 6, "fma": 5, "xu": 3}
"""Instructions of an unsigned 32-bit division at least, by unit: a reciprocal in fp32, and two steps to correct it."""


def _integer_divisions(opcodes: Mapping[str, int]) -> float:
    """Count divisions and remainders by divisors known only at run time: no other code rounds a conversion up."""
    return float(sum(n for opcode, n in opcodes.items() if opcode.startswith("I2F") and ".RP" in opcode))


def integer_divisions(facts: Facts) -> FindingDraft | None:
    """Say that many of the instructions divide integers."""
    opcodes = facts.kernel.warp_opcodes
    divisions, every = _integer_divisions(opcodes), sum(opcodes.values())
    part = min(1.0, divisions * _OF_AN_INTEGER_DIVISION["issue"] / every) if every else 0.0
    if part < facts.limits.little_share:
        return None
    amounts = {name: pipe.amount for name, pipe in facts.pipes.items() if pipe.unit == "inst" and pipe.amount}
    amounts["issue"] = every
    waste = Waste(
        {
            name: min(1.0, divisions * n / amounts[name])
            for name, n in _OF_AN_INTEGER_DIVISION.items()
            if name in amounts
        }
    )
    source = "sass__inst_executed_per_opcode_with_modifier_all"
    return FindingDraft(
        evidence=(
            Evidence("integer divisions", divisions, "divisions", source),
            Evidence(
                "division_share",
                part,
                "share",
                f"{_OF_AN_INTEGER_DIVISION['issue']} x divisions / instructions: {source}",
            ),
        ),
        move="divide integers less often, with shifts and masks for powers of two, divisors as template parameters, "
        f"or an index that is stepped: {si_of(divisions, 'divisions')} and remainders of warps make up at least "
        f"{percent(part)} of the instructions",
        waste=waste,
        changes="instructions",
    )


def conversions(facts: Facts) -> FindingDraft | None:
    """Say that much of the instructions convert values between types."""
    opcodes = facts.kernel.warp_opcodes
    every = sum(opcodes.values())
    counted = sum(n for op, n in opcodes.items() if opcode_group(op) == "conversions")
    part = (counted - (_OF_AN_INTEGER_DIVISION["xu"] - 1) * _integer_divisions(opcodes)) / every if every else 0.0
    if part < facts.limits.negligible_share:
        return None
    most = max((op for op in opcodes if opcode_group(op) == "conversions"), key=opcodes.__getitem__)
    on_xu = executed(opcodes, ("I2F", "F2I", "F2F", "FRND")) / (
        executed(opcodes, ("I2F", "F2I", "F2F", "FRND", "MUFU")) or 1
    )
    waste = Waste({"issue": part, "xu": on_xu})
    return FindingDraft(
        evidence=(Evidence("conversions", part, "share", "sass__inst_executed_per_opcode_with_modifier_all"),),
        move="convert fewer values, keeping operands in one type through the loop or converting packed pairs: "
        f"{percent(part)} of its instructions are conversions, most of them {most}",
        waste=waste,
        changes="instructions",
        confidence="medium",
    )


_SKIPPING = re.compile(r"curand_init|skip_?ahead", re.IGNORECASE)
"""cuRAND's functions that start a generator at a place in its sequence, which for XORWOW takes thousands of steps."""
_GENERATORS = "curand_kernel.h"
"""The file of cuRAND that both starts generators and steps them: a step is a few instructions, a start thousands."""


def curand_init(facts: Facts) -> FindingDraft | None:
    """Say that much of the time goes into starting random number generators."""
    grains: dict[str, float] = {}
    by_file = 0.0
    for spot in facts.kernel.hotspots:
        if _SKIPPING.search(f"{spot.function or ''} {spot.text or ''}"):
            grains[spot.by] = grains.get(spot.by, 0.0) + spot.measures.get("samples", 0.0)
        elif spot.by == "line" and not spot.text and (spot.file or "").endswith(_GENERATORS):
            by_file += spot.measures.get("samples", 0.0)
    named, total = max(grains.values(), default=0.0), facts.kernel.code_totals.get("samples")
    part, is_named = ratio(max(named, by_file), total) or 0.0, named >= by_file
    if part < facts.limits.little_share:
        return None
    place = (
        "cuRAND's `curand_init`" if is_named else f"lines of cuRAND's `{_GENERATORS}`, of which `curand_init` is most"
    )
    return FindingDraft(
        evidence=(Evidence("samples in curand_init", part, "share", "samples of the program counter"),),
        move="start each generator with a seed of its own and sequence 0 (`curand_init(seed + thread, 0, 0, &state)`), "
        f"or use Philox, which skips ahead at no cost, or keep the states: {percent(part)} of the samples are in "
        f"{place}",
        bears_on=frozenset({LATENCY, *facts.shares}),
        gain=1 / (1 - min(part, MOST_SPARED)),
        changes="instructions",
        where=places(facts.kernel, "samples"),
        confidence="high" if is_named else "low",
        severity="limiter" if part >= facts.limits.limiting_waste_share else "contributes",
    )


ARITHMETIC: tuple[FindingRule, ...] = (
    FindingRule("debug_build", "looks like a debug build", "instructions", debug_build, (("warp_opcodes",),)),
    FindingRule("conversions", "type conversions", "instructions", conversions, (("warp_opcodes",),)),
    FindingRule("curand_init", "starting random number generators", "algorithm", curand_init, (("code:samples",),)),
    FindingRule("integer_divisions", "integer divisions", "index", integer_divisions, (("warp_opcodes",),)),
    FindingRule(
        "unfused_arithmetic",
        "missed FMAs",
        "instructions",
        unfused_arithmetic,
        (
            ("thread_opcodes",),
            ("fadd_threads", "fmul_threads", "ffma_threads"),
            ("dadd_threads", "dmul_threads", "dfma_threads"),
        ),
    ),
    FindingRule("fp64_divisions", "fp64 divisions", "instructions", fp64_divisions, (("thread_opcodes",),)),
    FindingRule(
        "slow_fp64",
        "slow fp64 arithmetic",
        "precision",
        slow_fp64,
        (("thread_opcodes",), ("dfma_threads",), ("fp64_busy_share",)),
    ),
    FindingRule(
        "tensor_cores_unused",
        "unused tensor cores",
        "tensor",
        tensor_cores_unused,
        (("thread_opcodes",), ("ffma_threads",)),
    ),
)
