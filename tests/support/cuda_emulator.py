"""Build CUDA workloads for the CPU: launches are rewritten, CUDA's headers replaced by those in `cuda/`."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from support.one_source import write_one_source

from rooflens.model.cases import Workload

HEADERS = Path(__file__).parent / "cuda"
FLAGS = (
    *("-x", "c++", "-std=c++17", "-O1", "-g1", "-Wno-unknown-pragmas", "-fno-strict-aliasing"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)

_STAND_INS = {"mma.cuh": "int8_mma.h", "../warp_mma.cuh": "warp_mma.h", "../hopper.cuh": "hopper.h"}
"""What holds PTX, and the header that does the same on the CPU."""

_LAUNCH = re.compile(r"([\w:]+(?:<\w+>)?)<<<(.+?)>>>\((.*?)\);", re.DOTALL)


def build_for_cpu(workloads: Sequence[Workload], folder: Path, compiler: str, defines: Sequence[str] = ()) -> Path:
    """Compile workloads into one CPU program whose first argument names the workload to run; return its path."""
    for common in sorted(workloads[0].folder.parent.glob("*.cuh")):
        (folder / common.name).write_text(rewrite(common.read_text(encoding="utf-8")), encoding="utf-8")
    rewritten = [replace(workload, folder=_rewritten(workload.folder, folder)) for workload in workloads]
    return compile_for_cpu(write_one_source(rewritten, folder / "all.cu"), compiler, defines)


def compile_for_cpu(source: Path, compiler: str, defines: Sequence[str] = ()) -> Path:
    """Compile rewritten CUDA into a program beside it; return its path."""
    program = source.with_name("program")
    command = [compiler, *FLAGS, *(f"-D{name}" for name in defines), f"-I{HEADERS}", str(source), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the compiler, our sources
    assert done.returncode == 0, done.stderr
    return program


def _rewritten(original: Path, folder: Path) -> Path:
    """Write a workload's sources for the CPU into a folder of the same name; return the folder."""
    sources = folder / original.name
    sources.mkdir()
    for path in original.glob("*.cu*"):
        (sources / path.name).write_text(rewrite(path.read_text(encoding="utf-8")), encoding="utf-8")
    return sources


def rewrite(source: str) -> str:
    """Turn `kernel<<<grid, block>>>(arguments);` into calls of the emulator, and replace PTX."""
    for ptx, stand_in in _STAND_INS.items():
        source = source.replace(f'#include "{ptx}"', f"#include <{stand_in}>")
    return _LAUNCH.sub(_call, source)


def _call(match: re.Match[str]) -> str:
    kernel, configuration, arguments = match.groups()
    grid, block = _top_level(configuration)[:2]
    return f"emulator::launch({grid}, {block}, [](auto... all) {{ {kernel}(all...); }}, {arguments});"


def _top_level(text: str) -> list[str]:
    """Split at the commas outside all parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
