"""The flow of control as drawn by NVIDIA's disassembler: `nvdisasm -cfg`."""

from __future__ import annotations

import re
import subprocess
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import Struct
from support.sass_text import parse

from rooflens.model.inside.instruction import INSTRUCTION_BYTES, Instruction

_FUNCTION = re.compile(r"^//-+ \.text\.(\S+) -+$")
_LABEL = re.compile(r"^([\w$.]+):\s*$")
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_NAMED = re.compile(r"`\((.*?)\)")
_CLUSTER = re.compile(r'^subgraph "cluster_(.*)" \{')
_NODE = re.compile(r'^"(.*)"$')
_EDGE = re.compile(r'^"(.*?)":(\w+):\w -> "(.*?)":')
_PART = re.compile(r"(?<!\\)\|")

_AT_ADDRESS = re.compile(r"address (0x[0-9a-f]+)")
_NOP = (0x000FC000000000000000000000007918).to_bytes(INSTRUCTION_BYTES, "little")

_ABI, _OLD_ABI, _NEW_ABI = 7, 51, bytes([65, 8])
_VERSION, _FLAGS, _NEW_FLAGS = 0x14, 0x30, 0x0A000002
"""Offsets in the header of a cubin: the version, and flags with the GPU."""


class Drawn(Struct, frozen=True):
    """A function: its instructions, and each edge from the last instruction of a part to the first of a node."""

    name: str
    instructions: list[Instruction]
    edges: set[tuple[int, int]]


def nvdisasm() -> Path:
    """Return its path; skip the test if it is not installed."""
    spec = find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        for found in sorted(Path(folder).glob("*/bin/nvdisasm")):
            return found
    pytest.skip("no nvdisasm: `pip install nvidia-cuda-nvdisasm`")


def texts_of(code: bytes, capability: int, file: Path) -> list[tuple[int, str]]:
    """Return offset and text of the instructions of some code; those that it takes for none are left out.

    Args:
        code: The instructions.
        capability: Of the GPU: 90 for 9.0.
        file: Where to write them.
    """
    tool, left_out, before = str(nvdisasm()), set[int](), -1
    while len(left_out) > before:
        before = len(left_out)
        words = [code[at : at + INSTRUCTION_BYTES] for at in range(0, len(code) - 15, INSTRUCTION_BYTES)]
        file.write_bytes(b"".join(_NOP if place in left_out else word for place, word in enumerate(words)))
        command = [tool, "-b", f"SM{capability}", "-hex", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
        left_out |= {int(found, 16) // INSTRUCTION_BYTES for found in _AT_ADDRESS.findall(done.stderr)}
    lines = (_INSTRUCTION.match(line) for line in done.stdout.splitlines())
    found = [(int(line[1], 16), line[2]) for line in lines if line]
    return [(offset, text) for offset, text in found if offset // INSTRUCTION_BYTES not in left_out]


def drawn(data: bytes, cubin: Path) -> list[Drawn]:
    """Return the functions of a cubin that it can draw.

    Args:
        data: The cubin.
        cubin: Where to write it.
    """
    cubin.write_bytes(_in_todays_form(data))
    tool = str(nvdisasm())
    listing, picture = (_told(tool, option, str(cubin)).splitlines() for option in ("-c", "-cfg"))
    code, labels = _listed(listing)
    found = []
    for name, (parts, edges) in _pictured(picture).items():
        if name not in code or any(node not in labels[name] for node in parts):
            continue
        at = labels[name]
        last = {}
        for node, sizes in parts.items():
            place = at[node]
            for part, count in sizes:
                place += count * INSTRUCTION_BYTES
                last[node, part] = place - INSTRUCTION_BYTES
        instructions = [
            parse(offset, _NAMED.sub(lambda one, at=at: hex(at[one[1]]) if one[1] in at else one[0], text))
            for offset, text in code[name]
        ]
        found.append(Drawn(name, instructions, {(last[node, part], at[to]) for node, part, to in edges if to in at}))
    return found


def _told(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603 - ours


def _in_todays_form(data: bytes) -> bytes:
    """Write the header as CUDA 13 does, since it draws nothing for the older form."""
    if data[_ABI] != _OLD_ABI:
        return data
    header = bytearray(data)
    header[_ABI : _ABI + 2] = _NEW_ABI
    header[_VERSION : _VERSION + 4] = (1).to_bytes(4, "little")
    header[_FLAGS : _FLAGS + 4] = (_NEW_FLAGS | data[_FLAGS] << 8).to_bytes(4, "little")
    return bytes(header)


def _listed(lines: list[str]) -> tuple[dict[str, list[tuple[int, str]]], dict[str, dict[str, int]]]:
    """Return offset and text of all instructions by function, and the offsets of its labels."""
    code: dict[str, list[tuple[int, str]]] = {}
    labels: dict[str, dict[str, int]] = {}
    name, waiting = "", []
    for line in lines:
        if line.startswith("//"):
            match = _FUNCTION.match(line)
            name, waiting = match[1] if match else "", []
            if match:
                code[name], labels[name] = [], {name: 0}
        elif name and (match := _LABEL.match(line)):
            waiting.append(match[1])
        elif name and (match := _INSTRUCTION.match(line)):
            offset = int(match[1], 16)
            labels[name] |= dict.fromkeys(waiting, offset)
            waiting = []
            code[name].append((offset, match[2]))
    return code, labels


def _pictured(
    lines: list[str],
) -> dict[str, tuple[dict[str, list[tuple[str, int]]], list[tuple[str, str, str]]]]:
    """Return, by function, the parts of each node with their numbers of instructions, and all edges."""
    found: dict[str, tuple[dict[str, list[tuple[str, int]]], list[tuple[str, str, str]]]] = {}
    nodes: dict[str, list[tuple[str, int]]] = {}
    edges: list[tuple[str, str, str]] = []
    for line, following in pairwise([*lines, ""]):
        if match := _CLUSTER.match(line):
            nodes, edges = found.setdefault(match[1], ({}, []))
        elif (match := _NODE.match(line)) and following.startswith('[label="{'):
            body = following.removeprefix('[label="{').removesuffix('}"]')
            nodes[match[1]] = []
            for part in _PART.split(body):
                port, _, text = part.removeprefix("<").partition(">")
                rows = [row.replace("\\ ", " ") for row in text.split("\\l")]
                nodes[match[1]].append((port, sum(row.startswith("  ") and row.strip().endswith(";") for row in rows)))
        elif match := _EDGE.match(line):
            edges.append((match[1], match[2], match[3]))
    return found
