"""The kind of every move at hand is what its sentence asks for: programs count by kinds, people read sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from rooflens.analyzing import analyze_paths
from rooflens.model.records import Finding, Move, MoveKind

_MUST = {
    "coalesce": r"neighbouring|coalesced|start rows on",
    "tile": r"\btiles?\b|shared memory",
    "results": r"several results|more results|warp as a tile|larger tiles|each thread do more work",
    "wide": r"wider|\d+ bytes at a time|\d+ bytes at once|vector load",
    "inflight": r"in flight|independent (?:work|chains)|before the first use|ahead",
    "elements": r"elements|several values",
    "pad": r"\bpad\b|swizzle",
    "occupancy": r"occupancy|hold \d+ blocks at once|more warps|fewer (?:registers|warps)",
    "blocks": r"more blocks|block for every SM|more work in a call|spread the work|fewer blocks|smaller blocks",
    "shape": r"block (?:size|shape)",
    "divergence": r"same path|lanes",
    "atomics": r"atomic",
    "spill": r"values live|local memory|launch bounds",
    "barrier": r"barriers|wait for fewer warps",
    "balance": r"balance|last wave|finer|dynamically",
    "overlap": r"while |overlap",
    "fuse": r"fuse|fewer bytes",
    "graph": r"CUDA graph",
    "precision": r"halve the bytes|narrower|fp32|fp16|bf16|compress",
    "tensor": r"tensor cores",
    "instructions": r"instructions|special functions|reciprocals|divisions|convert fewer",
    "index": r"\bindex\b",
    "shuffle": r"shuffles",
    "cache": r"order the blocks|let L1 keep|reorder|always miss",
    "algorithm": r"compare it with|copy the data|algorithm|sorted|fewer passes|do less|host|once",
    "library": r"^call |an algorithm of|another algorithm|picks this\)|'s own code\)",
    "collect": r"collect|lacks|profile it again|replay-mode|not measured|only kernels that fill|recorded? it again|bug",
    "nvidia": r"^see NVIDIA's rule",
}
"""Words of which each kind's sentences must hold some."""

_ONLY = {
    r"^see NVIDIA's rule": {"nvidia"},
    r"^pad or swizzle": {"pad"},
    r"^raise occupancy": {"occupancy"},
    r"^let neighbouring threads": {"coalesce"},
    r"^launch more blocks": {"blocks"},
    r"^(?:let each thread compute|let each thread reduce several|process) several (?!elements)": {
        "results",
        "elements",
    },
    r"^(?:process|loop over|add up) several elements": {"elements"},
    r"^keep more (?:loads|bytes|tiles) in flight": {"inflight"},
    r"^load (?:wider:|\d+ bytes at once)": {"wide"},
    r"^fuse it with": {"fuse"},
    r"^halve the bytes": {"precision"},
    r"^(?:collect what|profile it again)": {"collect"},
    r"^make the block size a multiple": {"shape"},
    r"^balance the work": {"balance"},
    r"^group threads that take the same path": {"divergence"},
    r"^finish with shuffles": {"shuffle"},
}
"""Beginnings of sentences, and the kinds that alone may begin like that; a library's kernel has `library` alone."""


def _every_move(paths: list[Path]) -> Iterator[Move | Finding]:
    for report in analyze_paths(paths).reports:
        for analysis in report.analyses:
            yield from (*analysis.verdict.moves, *analysis.findings)


@pytest.fixture(scope="module")
def moves(corpus: Path, once: Callable[[str, Callable[[], Any]], Any]) -> dict[tuple[str, str], int]:
    """Return the moves of all reports, texts and exports at hand: kind and sentence, and how often."""

    def read() -> dict[tuple[str, str], int]:
        paths = [folder for name in ("corpus", "cases", "outcomes") if (folder := corpus.parent / name).exists()]
        texts = ((one.kind, one.text if isinstance(one, Move) else one.move) for one in _every_move(paths))
        return dict(Counter(texts))

    return once("moves", read)


def test_every_kind_has_words() -> None:
    """A kind that is added has to say by what words a reader would know it."""
    assert set(_MUST) == set(get_args(MoveKind))


def test_sentence_and_kind_of_every_move_agree(moves: dict[tuple[str, str], int]) -> None:
    """Each sentence holds a word of its kind, and none begins like those of another kind."""
    assert sum(moves.values()) > 2000
    lacking = {one: times for one, times in moves.items() if not re.search(_MUST[one[0]], one[1])}
    of_others = {
        (kind, text): times
        for (kind, text), times in moves.items()
        for words, kinds in _ONLY.items()
        if kind not in {*kinds, "library"} and re.search(words, text)
    }
    assert not lacking, (len(lacking), list(lacking)[:12])
    assert not of_others, (len(of_others), list(of_others)[:12])
