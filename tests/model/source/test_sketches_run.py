"""Sketches compiled and run: a kernel with its sketch computes what it computed before, on an emulated GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec import Struct
from support.cuda_emulator import compile_for_cpu, rewrite
from support.kernels import make_kernel

from rooflens.model.records import Hotspot, Move, MoveKind, Place, SourceFile
from rooflens.model.source.edits import with_edits

pytestmark = pytest.mark.emulated

_HEAD = "__global__ void turn(const int* a, int* out, int n) {{\n{}\n}}\n"
_TILE = "__shared__ int tile[32][32];"
_LOAD = "tile[threadIdx.y][threadIdx.x] = a[threadIdx.y * 32 + threadIdx.x];"
_BY_COLUMN = "out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];"
_SUM = """\
__shared__ int part[128];
int tid = threadIdx.x;
part[tid] = a[blockIdx.x * blockDim.x + tid];
__syncthreads();
{}
if (tid == 0) out[blockIdx.x] = part[0];"""
_STEP = "if (tid < s) part[tid] += part[tid + s];"
_HALVES = f"for (int s = blockDim.x / 2; s > 0; s >>= 1) {{\n{_STEP}\n__syncthreads();\n}}"
_FEWER = f"for (int s = blockDim.x / 2; s >= 32; s >>= 1) {{\n{_STEP}\n__syncthreads();\n}}"
_SQUARE, _ROW = (32, 32, 1), (128, 1, 1)


class Case(Struct, frozen=True):
    """A kernel, and what a reader makes of it by its sketch.

    Attributes:
        line: Of the body's lines, from 1, the one that the move is about.
        ways: Passes an access counted there; 0 if it is not about shared memory.
    """

    name: str
    block: tuple[int, int, int]
    finding: str | None
    line: int
    before: str
    after: str
    ways: int = 0
    kind: MoveKind = "pad"

    @property
    def sketch(self) -> tuple[str, ...]:
        """The lines of the sketch that are code."""
        counted = {"shared_wavefronts": float(self.ways), "shared_excess_wavefronts": self.ways - 1.0}
        spot = Hotspot("line", file="/k.cu", line=self.line + 1, measures=counted if self.ways else {})
        kernel = make_kernel(
            block=self.block,
            compute_capability="8.0",
            function_name="turn",
            hotspots=(spot,),
            sources={"/k.cu": SourceFile(_HEAD.format(self.before))},
        )
        where = (Place(spot, 1.0),) if self.finding else ()
        (move,) = with_edits(kernel, [Move("do it", self.kind, finding=self.finding, where=where)], [], "turn-0")
        lines = move.edit.after if move.edit is not None else ()
        return tuple(
            line.partition("  //")[0].removesuffix("{ ... }").strip() for line in lines if not line.startswith("//")
        )


CASES = (
    Case(
        "transposed",
        _SQUARE,
        "bank_conflicts",
        4,
        "\n".join((_TILE, _LOAD.replace("y][threadIdx.x", "x][threadIdx.y"), "__syncthreads();", _BY_COLUMN)),
        "\n".join((_TILE, _LOAD, "__syncthreads();", _BY_COLUMN.replace("x][threadIdx.y", "y][threadIdx.x"))),
        32,
    ),
    Case(
        "padded",
        _SQUARE,
        "bank_conflicts",
        4,
        f"{_TILE}\n{_LOAD}\n__syncthreads();\n{_BY_COLUMN}",
        f"__shared__ int tile[32][32 + 1];\n{_LOAD}\n__syncthreads();\n{_BY_COLUMN}",
        32,
    ),
    Case(
        "spread",
        _SQUARE,
        "bank_conflicts",
        5,
        "__shared__ int line[1024];\nint at = threadIdx.y * 32 + threadIdx.x;\nline[at] = a[at];\n__syncthreads();\n"
        "out[at] = line[threadIdx.x * 32 + threadIdx.y];",
        "__shared__ int line[1024 + 32];\nint at = threadIdx.y * 32 + threadIdx.x;\n"
        "#define SPREAD(i) ((i) + (i) / 32)\nline[SPREAD(at)] = a[at];\n__syncthreads();\n"
        "out[at] = line[SPREAD(threadIdx.x * 32 + threadIdx.y)];",
        32,
    ),
    Case(
        "last warp alone",
        _ROW,
        "stall_barrier",
        5,
        _SUM.format(_HALVES),
        _SUM.format(
            _FEWER + "\nif (tid < 32) for (int s = 16; s > 0; s >>= 1) "
            "{ if (tid < s) part[tid] += part[tid + s]; __syncwarp(); }"
        ),
    ),
    Case(
        "shuffles",
        _ROW,
        None,
        1,
        _SUM.format(_HALVES),
        _SUM.format(
            _FEWER + "\nauto sum = part[tid]; for (int lanes = 16; lanes > 0; lanes /= 2) "
            "sum += __shfl_down_sync(0xffffffff, sum, lanes);\nif (tid == 0) part[0] = sum;"
        ),
        kind="shuffle",
    ),
    Case(
        "from large to small",
        _ROW,
        "stall_barrier",
        5,
        _SUM.format(
            "for (int s = 1; s < blockDim.x; s *= 2) {\nint at = 2 * s * tid;\n"
            "if (at < blockDim.x) part[at] += part[at + s];\n__syncthreads();\n}"
        ),
        _SUM.format(_HALVES),
    ),
    Case(
        "whole warps",
        _ROW,
        "thread_divergence",
        6,
        _SUM.format(
            "for (int s = 1; s < blockDim.x; s *= 2) {\nif (tid % (2 * s) == 0) part[tid] += part[tid + s];\n"
            "__syncthreads();\n}"
        ),
        _SUM.format(
            "for (int s = 1; s < blockDim.x; s *= 2) {\nint index = (2 * s) * tid;\n"
            "if (index < blockDim.x) part[index] += part[index + s];\n__syncthreads();\n}"
        ),
    ),
    Case(
        "directions swapped",
        _SQUARE,
        "uncoalesced_global_load",
        3,
        "int row = threadIdx.x;\nint column = threadIdx.y;\nout[row * 32 + column] = a[row * 32 + column] + row;",
        "int row = threadIdx.y;\nint column = threadIdx.x;\nout[row * 32 + column] = a[row * 32 + column] + row;",
    ),
    Case(
        "a warp's sum",
        _ROW,
        "contended_atomics",
        1,
        "atomicAdd(&out[0], a[blockIdx.x * blockDim.x + threadIdx.x]);",
        "auto sum = a[blockIdx.x * blockDim.x + threadIdx.x];\nfor (int lanes = 16; lanes > 0; lanes /= 2) "
        "sum += __shfl_down_sync(0xffffffff, sum, lanes);\nif (threadIdx.x % 32 == 0) atomicAdd(&out[0], sum);",
    ),
    Case(
        "copied past registers",
        _ROW,
        "unoverlapped_loads",
        2,
        "__shared__ int part[128];\npart[threadIdx.x] = a[threadIdx.x];\n__syncthreads();\n"
        "out[threadIdx.x] = part[127 - threadIdx.x];",
        "__shared__ int part[128];\n"
        "__pipeline_memcpy_async(&part[threadIdx.x], &a[threadIdx.x], sizeof(part[threadIdx.x]));\n"
        "__pipeline_commit();\n__pipeline_wait_prior(0);\n__syncthreads();\n"
        "out[threadIdx.x] = part[127 - threadIdx.x];",
    ),
)

_PROGRAM = """\
#include <cuda_runtime.h>
#include <cuda_pipeline.h>
#include <cstdio>
#include <vector>
{kernels}
int main() {{
  const int n = 1024;
  int *a, *one, *other;
  cudaMalloc((void**)&a, n * sizeof(int));
  cudaMalloc((void**)&one, n * sizeof(int));
  cudaMalloc((void**)&other, n * sizeof(int));
  for (int i = 0; i < n; ++i) a[i] = i * 7919 % 1009;
{runs}
}}
"""
_RUN = """\
  for (int i = 0; i < n; ++i) one[i] = other[i] = 0;
  before{number}::turn<<<{grid}, {block}>>>(a, one, n);
  after{number}::turn<<<{grid}, {block}>>>(a, other, n);
  cudaDeviceSynchronize();
  for (int i = 0; i < n; ++i) if (one[i] != other[i]) {{ std::puts("{name}"); break; }}
  if (one[0] == 0 && one[1] == 0) std::puts("{name}: nothing computed");"""


def test_the_kernel_with_its_sketch_is_the_sketch() -> None:
    """Each line of code of a sketch stands in the kernel that is run below."""
    missing = [
        (case.name, line)
        for case in CASES
        for line in case.sketch or ("a sketch",)
        if " ".join(line.split()) not in " ".join(case.after.split())
    ]
    assert missing == []


def test_a_kernel_with_its_sketch_computes_the_same(tmp_path: Path) -> None:
    """Before and after give the same numbers in every thread."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    kernels = "\n".join(
        f"namespace {when}{number} {{\n{_HEAD.format(body)}}}"
        for number, case in enumerate(CASES)
        for when, body in (("before", case.before), ("after", case.after))
    )
    runs = "\n".join(
        _RUN.format(
            number=number,
            name=case.name,
            grid=1024 // (case.block[0] * case.block[1]),
            block=f"dim3({', '.join(map(str, case.block))})",
        )
        for number, case in enumerate(CASES)
    )
    source = tmp_path / "all.cu"
    source.write_text(rewrite(_PROGRAM.format(kernels=kernels, runs=runs)), encoding="utf-8")
    program = compile_for_cpu(source, compiler)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([program], capture_output=True, text=True, check=False, env=environment)  # noqa: S603 - ours
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
