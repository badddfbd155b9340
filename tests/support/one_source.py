"""Write one source with many CUDA workloads, so that a compiler reads their headers only once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from rooflens.model.cases import Workload

_SYSTEM_HEADER = re.compile(r"^#include <.*>$", re.MULTILINE)
_SHARED_HEADER = re.compile(r'^#include "\.\./(.*)"$', re.MULTILINE)
_CUBLAS = "#include <cublas_v2.h>"


def namespace_of(name: str) -> str:
    """Name the namespace of a workload's code, which is part of the mangled names of its kernels."""
    return f"workload_{name}"


def write_one_source(workloads: Iterable[Workload], path: Path) -> Path:
    """Write a program whose first argument names the workload to run; the others are that workload's.

    Every workload's own file is included unchanged, in a namespace of its own. The system headers it includes, and the
    headers shared by workloads, precede all of them, outside the namespaces.
    """
    workloads = list(workloads)
    texts = [file.read_text(encoding="utf-8") for one in workloads for file in sorted(one.folder.glob("*.cu*"))]
    folder = workloads[0].folder.parent
    shared = dict.fromkeys(name for text in texts for name in _SHARED_HEADER.findall(text))
    headers = dict.fromkeys(line for text in texts for line in _SYSTEM_HEADER.findall(text))
    cublas = ["#ifdef ROOFLENS_CUBLAS", _CUBLAS, "#endif"] if headers.pop(_CUBLAS, "") is None else []
    programs = [_in_namespace(one) for one in workloads]
    choices = [_choice(one.name) for one in workloads]
    lines = [*(f'#include "{folder / name}"' for name in sorted(shared)), *headers, *cublas, *programs]
    lines += ["int main(int argc, char** argv) {"]
    lines += ['  const std::string name = argc > 1 ? argv[1] : "";', *choices, "  return 2;", "}", ""]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _choice(name: str) -> str:
    return f'  if (name == "{name}") return {namespace_of(name)}::run(argc - 1, argv + 1);'


def _in_namespace(workload: Workload) -> str:
    source = workload.folder / workload.program
    return f'#define main run\nnamespace {namespace_of(workload.name)} {{\n#include "{source}"\n}}\n#undef main'
