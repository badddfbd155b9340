"""Check loops and waits against the authors' sources, NVIDIA's disassembler and the reports' own sums."""

from __future__ import annotations

import csv
import posixpath
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.nvdisasm import drawn, nvdisasm

from rooflens.errors import InputError
from rooflens.ingest.cubin.budget import CodeBudget as CubinBudget
from rooflens.ingest.cubin.elf import Cubin
from rooflens.ingest.cubin.lines import read_lines
from rooflens.ingest.messages.messages import decode
from rooflens.ingest.reports.container import outline
from rooflens.ingest.reports.machine_code import Insides
from rooflens.ingest.reports.protobuf import ResultReader
from rooflens.ingest.reports.read import opened, read_report
from rooflens.ingest.reports.report import ReadOptions
from rooflens.model.hotspots import STALL
from rooflens.model.inside.code import MachineCode
from rooflens.model.inside.graph import Graph, flow
from rooflens.model.inside.instruction import END_BLOCKS
from rooflens.model.inside.look import look_inside
from rooflens.model.inside.loops import find_rows, flop_of
from rooflens.model.records import Kernel
from rooflens.model.roofline.opcodes import tensor_op, thread_flop

_MOST_OF_A_REPORT = 3
"""Kernels of a report that are looked into, the longest."""
_ROUNDING = 1e-3
_LARGEST_CUBIN_BYTES = 100_000
"""Whole libraries take the disassembler a quarter of a minute."""
_LOADS = frozenset({"global load", "atomic", "local", "texture"})

pytestmark = pytest.mark.corpus


@pytest.fixture(scope="module")
def rows(corpus: Path) -> list[dict[str, str]]:
    """Return the loops whose trips were worked out by hand."""
    table = corpus.parent / "outcomes" / "loops.tsv"
    if not table.is_file():
        pytest.skip(f"no table of loops at {table}")
    with table.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.fixture(scope="module")
def inside(corpus: Path, rows: list[dict[str, str]]) -> dict[tuple[str, int], tuple[Kernel, MachineCode]]:
    """Return the kernels of the programs with such loops, with their machine code, by path and index."""
    wanted: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        wanted[row["path"]].add(int(row["index"]))
    found = {}
    for path, indices in wanted.items():
        for index, kernel, code in _looked_into(corpus.parent / path, indices):
            found[path, index] = kernel, code
    return found


def _looked_into(file: Path, indices: set[int] | None = None) -> Iterator[tuple[int, Kernel, MachineCode]]:
    """Yield the requested, or the longest, kernels of a report with their machine code."""
    report = read_report(file, file.name, ReadOptions(reader="direct", texts=False))
    counted = [kernel for kernel in report.kernels if kernel.code_totals.get("warp_inst")]
    longest = sorted(counted, key=lambda kernel: -(kernel.duration_ns or 0))[:_MOST_OF_A_REPORT]
    chosen = {kernel.index: kernel for kernel in (longest if indices is None else counted)}
    chosen = {index: kernel for index, kernel in chosen.items() if indices is None or index in indices}
    with opened(file) as (data, digest):
        reader, insides = ResultReader(data, outline(data, digest, file.suffix)), Insides()
        for index, kernel in chosen.items():
            result = reader.result(index)
            code = insides.code(result, result.instructions) if result.instructions else ""
            if isinstance(code, MachineCode):
                yield index, kernel, code


def test_trips_are_those_worked_out_from_the_sources(
    rows: list[dict[str, str]], inside: dict[tuple[str, int], tuple[Kernel, MachineCode]]
) -> None:
    """Each loop begins at its header, and its body runs as often as source and launch say."""
    wrong = []
    for row in rows:
        _, code = inside[row["path"], int(row["index"])]
        starts = {one.start: one for one in find_rows(code).loops if one.kind == "loop"}
        loop = starts.get(int(row["start"], 16))
        if loop is None or loop.trips != pytest.approx(float(row["trips"]), rel=1e-6):
            wrong.append(f"{row['path']} {row['start']}: {loop and loop.trips} for {row['trips']}")
    assert len(rows) > 40
    assert not wrong, "\n".join(wrong)


def _lost(kernel: Kernel, code: MachineCode) -> Iterator[str]:
    """Yield the differences between rows and sums, and between rows and the opcode table."""
    found = find_rows(code)
    if found.note:
        return
    for measure, at in code.amounts.items():
        own = sum(one.own.get(measure, 0.0) for one in found.loops)
        whole = sum(one.amounts.get(measure, 0.0) for one in found.loops if one.parent is None)
        total = kernel.code_totals.get(measure, own + code.outside.get(measure, 0.0))
        if not own == whole == sum(at.values()) == total - code.outside.get(measure, 0.0):
            yield f"{measure}: {own:g}, {whole:g}, {sum(at.values()):g}, {total:g}"
    if kernel.thread_opcodes and kernel.warp_opcodes:
        yield from _other_flop(kernel, code)


def _other_flop(kernel: Kernel, code: MachineCode) -> Iterator[str]:
    """Yield the types whose operations differ from the opcode table's."""
    flop: dict[str, float] = defaultdict(float)
    for one in code.instructions:
        if (made := flop_of(one, code)) is not None:
            flop[made[0]] += made[1]
    stated: dict[str, float] = defaultdict(float)
    for opcode, count in kernel.thread_opcodes.items():
        if (scalar := thread_flop(opcode)) is not None:
            stated[scalar[0]] += scalar[1] * count
    for opcode, count in kernel.warp_opcodes.items():
        if (matrix := tensor_op(opcode)) is not None:
            stated[f"tensor_{matrix.dtype}"] += matrix.ops * count
    stated["fp16"] -= 4 * kernel.code_totals.get("fp16_constant_threads", 0.0)
    for dtype in flop.keys() | stated:
        if flop[dtype] != pytest.approx(stated[dtype], rel=_ROUNDING):
            yield f"{dtype}: {flop[dtype]:g} FLOP, the table has {stated[dtype]:g}"


def test_loops_are_named_by_their_statement(
    rows: list[dict[str, str]], inside: dict[tuple[str, int], tuple[Kernel, MachineCode]]
) -> None:
    """A loop's line is that of its statement in the author's file, also where a library's header is inlined."""
    asked, right = 0, []
    for row in rows:
        _, code = inside[row["path"], int(row["index"])]
        loop = next(one for one in find_rows(code).loops if one.start == int(row["start"], 16) and one.kind == "loop")
        if loop.file is not None:
            asked += 1
            right += [row["line"]] * (row["line"].rpartition("/")[2] == f"{Path(loop.file).name}:{loop.line}")
    # The table of lines has no row of two statements; Julia writes no calls, so that two have another file's line.
    assert asked - len(right) <= 4, right


_FILE = re.compile(r'//## File "([^"]+)", line (\d+)')
_TEXT, _AT = re.compile(r"\.text\.(\S+):"), re.compile(r"\s+/\*([0-9a-f]{4,})\*/")


def _paths_of_nvdisasm(cubin: Path) -> Iterator[tuple[bytes, int, tuple[tuple[str, int], ...]]]:
    """Yield function, offset and path of each instruction with a line, outermost first."""
    command = (nvdisasm(), "-gi", "-c", cubin)
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    # It refuses some damaged names, and GPUs that its version has left behind.
    function, path, is_read = b"", list[tuple[str, int]](), True
    for text in done.stdout.splitlines():
        if match := _TEXT.match(text):
            function, path = match[1].encode(), []
        elif match := _FILE.search(text):
            path = ([] if is_read else path) + [(posixpath.normpath(match[1]), int(match[2]))]
            is_read = False
        elif match := _AT.match(text):
            is_read = True
            if function and path:
                yield function, int(match[1], 16), tuple(path[::-1])


def test_paths_through_inlined_calls_are_those_of_nvidias_disassembler(
    corpus: Path, rows: list[dict[str, str]], tmp_path: Path
) -> None:
    """They differ where several statements share an address: the first counts here, as in `ncu`, there the last."""
    asked = inlined = apart = 0
    for path in sorted({row["path"] for row in rows}):
        for binary in _cubins(corpus.parent / path):
            if len(binary) > _LARGEST_CUBIN_BYTES or not binary.startswith(b"\x7fELF"):
                continue
            (tmp_path / "one.cubin").write_bytes(binary)
            budget = CubinBudget()
            lines = read_lines(Cubin(binary, budget), budget).of
            if not lines:
                continue
            for function, offset, expected in _paths_of_nvdisasm(tmp_path / "one.cubin"):
                asked += 1
                inlined += len(expected) > 1
                apart += lines[function].path(offset) != expected
    assert asked > 5000
    assert inlined > 200
    assert apart < 0.02 * asked


def test_rows_add_up_to_the_kernel(inside: dict[tuple[str, int], tuple[Kernel, MachineCode]]) -> None:
    """Rows add up to the last instruction, sector, wavefront and sample, and FLOPs are the opcode table's."""
    wrong = [f"{key}: {lost}" for key, one in inside.items() for lost in _lost(*one)]
    assert not wrong, "\n".join(wrong)


def test_rows_add_up_on_every_report(corpus: Path) -> None:
    """Rows add up for the longest kernels of every report with counts by instruction."""
    files = [*corpus.glob("*.ncu-rep"), *(corpus.parent / "outcomes" / "reports").rglob("*.ncu-rep")]
    wrong, looked_into = [], 0
    for file in sorted(files):
        try:
            for index, kernel, code in _looked_into(file):
                looked_into += 1
                wrong += [f"{file.name} {index}: {lost}" for lost in _lost(kernel, code)]
        except InputError:
            continue  # no report
    assert looked_into > 50
    assert not wrong, "\n".join(wrong)


def _by_definition(graph: Graph, position: int, reads: frozenset[int]) -> int | None:
    """Return the load of the same block that an operand comes from, if there is one."""
    needed = set(reads)
    for place in range(position - 1, graph.blocks[graph.block_of(position)].first - 1, -1):
        made = graph.instructions[place]
        if made.writes & needed:
            if made.kind in _LOADS:
                return made.offset
            needed -= made.writes
    return None


def test_scoreboards_and_registers_name_one_producer(
    inside: dict[tuple[str, int], tuple[Kernel, MachineCode]],
) -> None:
    """In straight-line code scoreboards and registers disagree for less than one in a hundred samples."""
    agreed = apart = 0.0
    for _, code in inside.values():
        waits = code.amounts.get(f"{STALL}long_scoreboard", {})
        found = look_inside(code).waits
        for graph in find_rows(code).graphs:
            for position, one in enumerate(graph.instructions):
                load = _by_definition(graph, position, one.reads) if one.offset in waits else None
                if load is None:
                    continue
                if any(wait.pc == load and wait.reason == "long_scoreboard" for wait in found.get(one.offset, ())):
                    agreed += waits[one.offset]
                else:
                    apart += waits[one.offset]
    assert agreed > 1e6
    assert apart < 0.01 * (agreed + apart)


def _cubins(file: Path) -> Iterator[bytes]:
    with opened(file) as (data, digest):
        for start, end in outline(data, digest, file.suffix).sources:
            message = decode("SourceData", data[start:end])
            if message is not None and message.Binary:
                yield message.Binary


def _reached(graph: Graph) -> set[int]:
    """Return the blocks reachable from the function's start: NVIDIA draws called functions separately or not at all."""
    reached, waiting = {0}, [0]
    while waiting:
        for after in graph.after[waiting.pop()]:
            if after not in reached:
                reached.add(after)
                waiting.append(after)
    return reached


def test_the_flow_of_control_is_that_of_nvidias_disassembler(
    corpus: Path, rows: list[dict[str, str]], tmp_path: Path
) -> None:
    """Jumps, and backward jumps, are the same in every function of the programs with loops."""
    wrong, seen, functions = [], set(), 0
    for path in sorted({row["path"] for row in rows}):
        for cubin in _cubins(corpus.parent / path):
            if cubin in seen or len(cubin) > _LARGEST_CUBIN_BYTES:
                continue
            seen.add(cubin)
            for one in drawn(cubin, tmp_path / "one.cubin"):
                functions += 1
                graph = flow(one.instructions)
                offsets = [one.instructions[block.first].offset for block in graph.blocks]
                ours = {
                    (one.instructions[graph.blocks[block].end - 1].offset, offsets[after])
                    for block in _reached(graph)
                    for after in graph.after[block]
                }
                jumping = {found.offset for found in one.instructions if found.base in END_BLOCKS}
                apart = {(start, end) for start, end in ours ^ one.edges if end != start + 16 and start in jumping}
                if apart or graph.is_irreducible:
                    jumps = [f"{start:#x} -> {end:#x}" for start, end in sorted(apart)]
                    wrong.append(f"{path} {one.name[:60]}: {jumps[:4]}")
    assert functions > 10
    assert not wrong, "\n".join(wrong)


_STAGES = {("cutlass__384.ncu-rep", 1): 3, ("cutlass__384.ncu-rep", 2): 3}
"""Report and kernel -> stages, the last number in the name of `MmaMultistage`."""


def _reaching(graph: Graph, position: int) -> set[int]:
    """Return the positions that some way leads from to a position, found backward."""
    before: dict[int, list[int]] = {}
    for block, following in enumerate(graph.after):
        for one in following:
            before.setdefault(one, []).append(block)
    block = graph.block_of(position)
    found = set(range(graph.blocks[block].first, position))
    blocks, seen = list(before.get(block, ())), set[int]()
    while blocks:
        one = blocks.pop()
        if one not in seen:
            seen.add(one)
            found |= set(range(graph.blocks[one].first, graph.blocks[one].end))
            blocks += before.get(one, ())
    return found


def test_no_wait_for_copies_names_one_that_was_not_issued(corpus: Path) -> None:
    """Each copy that a wait names reaches it on some way, and stages are what a kernel's own name says."""
    files = [*corpus.glob("*.ncu-rep"), *(corpus.parent / "outcomes" / "reports").rglob("*.ncu-rep")]
    asked, impossible, stages = 0, [], {}
    for file in sorted(files):
        try:
            kernels = list(_looked_into(file))
        except InputError:
            continue  # no report
        for index, kernel, code in kernels:
            if not any(one.base == "LDGSTS" for one in code.instructions):
                continue
            inside = look_inside(code)
            stages[file.name, index] = [loop.anatomy.stages for loop in inside.loops if loop.anatomy is not None]
            for graph in find_rows(code).graphs:
                at = {one.offset: position for position, one in enumerate(graph.instructions)}
                for pc, waits in inside.waits.items():
                    named = {at[wait.pc] for wait in waits if wait.how == "group" and wait.pc in at}
                    asked += bool(named)
                    if pc in at and named - _reaching(graph, at[pc]):
                        impossible.append((file.name, index, kernel.function_name, hex(pc)))
    assert asked >= 15
    assert not impossible
    assert {key: number for key, number in _STAGES.items() if number not in stages[key]} == {}
