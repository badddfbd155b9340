"""Builds a CUDA workload for the CPU: launches rewritten, CUDA's headers replaced by those in `cuda/`."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooflens.model.cases import Workload

HEADERS = Path(__file__).parent / "cuda"
FLAGS = (
    *("-x", "c++", "-std=c++17", "-O1", "-g", "-Wno-unknown-pragmas", "-fno-strict-aliasing"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)

_LAUNCH = re.compile(r"([\w:]+(?:<\w+>)?)<<<(.+?)>>>\((.*?)\);", re.DOTALL)


def build_for_cpu(workload: Workload, folder: Path, compiler: str) -> Path:
    """Compile a workload into a program that runs its kernels on the CPU; return its path."""
    sources = folder / workload.name
    sources.mkdir()
    for path in [workload.folder.parent / "common.cuh", *workload.folder.glob("*.cu*")]:
        target = folder / path.name if path.name == "common.cuh" else sources / path.name
        target.write_text(rewrite(path.read_text(encoding="utf-8")), encoding="utf-8")
    program = sources / "program"
    command = [compiler, *FLAGS, f"-I{HEADERS}", str(sources / workload.program), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the compiler, our sources
    assert done.returncode == 0, done.stderr
    return program


def rewrite(source: str) -> str:
    """Turn `kernel<<<grid, block>>>(arguments);` into calls of the emulator, and PTX into its stand-in."""
    return _LAUNCH.sub(_call, source.replace('#include "mma.cuh"', "#include <int8_mma.h>"))


def _call(match: re.Match[str]) -> str:
    kernel, configuration, arguments = match.groups()
    grid, block = _top_level(configuration)[:2]
    return f"emulator::launch({grid}, {block}, [](auto... all) {{ {kernel}(all...); }}, {arguments});"


def _top_level(text: str) -> list[str]:
    """Split at the commas that stand in no parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
