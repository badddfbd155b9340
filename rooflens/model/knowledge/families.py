"""Families of kernels that the documentation has a page of, known by the words that programmers name kernels with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

WORDS = MappingProxyType(
    {
        "": r"_bwd|flash_bwd|backward|_wgrad|_dgrad|distribution_elementwise",
        "attention-decode.md": r"splitkv|paged|decode_?att|flash_?decod",
        "attention-prefill.md": r"flash|attention|\battn|_attn|fmha",
        "reduction.md#softmax": r"soft_?max|nll_?loss|cross_?entropy",
        "normalisation.md": r"(?:layer|rms|batch|group)_?norm",
        "gemm.md#narrow-weights": r"w4a16|marlin|\bawq|gptq|gemm_int4",
        "gemm.md#many-products": r"grouped_?gemm|batched_?gemm|gemm_?batched|\bmoe_",
        "gemm.md#convolutions": r"conv(?:olve|olution|2d|1d|3d|_fwd)|winograd|implicit_gemm",
        "gemm.md#few-rows": r"gemv|mat_?vec",
        "gemm.md": r"gemm|mat_?mul|nvjet",
        "sort.md": r"radix_?sort|merge_?sort|_sort\b|\bsort_|bitonic",
        "sort.md#scan": r"\bscan|_scan|device_?scan|prefix_?sum|device_?select",
        "reduction.md": r"reduc(?:e|tion)",
        "stencil.md": r"stencil|jacobi|laplac",
        "elementwise.md#copies-and-transposes": r"transpose|\bcopy|_copy|memcpy|memset|\bfill",
        "elementwise.md": r"element_?wise|axpy|(?:vec|vector|matrix)_?add|\badam|_adam|\blamb_|sgd_",
    }
)
"""Page or section of docs/kernels -> what the names of its kernels hold, in lower case; the first that fits counts.

The first entry has no page: its names would otherwise lead to the page of another family.
"""
TITLES = MappingProxyType(
    {
        "attention-decode.md": "Attention in decode, paged caches",
        "attention-prefill.md": "Attention over a prompt",
        "elementwise.md": "Elementwise kernels, copies, transposes",
        "gemm.md": "Matrix products: GEMM",
        "normalisation.md": "Layer and RMS normalisation",
        "reduction.md": "Reductions and softmax",
        "sort.md": "Sorting and scans",
        "stencil.md": "Stencils",
    }
)
"""Page of docs/kernels -> its title."""
COUNTER_TITLES = MappingProxyType(
    {
        "arithmetic.md": "Arithmetic: FLOPs, tensor work, pipes",
        "execution.md": "Instructions, waits, samples",
        "l1.md": "L1: global and local memory",
        "memory.md": "DRAM, L2, atomics, the host's memory",
        "occupancy.md": "Occupancy",
        "shared-memory.md": "Shared memory",
        "speed-of-light.md": "NVIDIA's throughputs",
        "time.md": "Time, clocks, balance",
    }
)
"""Page of docs/reference/counters -> its title."""
_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def family_page(function_name: str) -> str | None:
    """Return the page or section of a kernel's family, `gemm.md#few-rows`; None for names that tell none."""
    name = _CAPITALS.sub("_", function_name).lower()
    return next((page for page, words in WORDS.items() if re.search(words, name)), None) or None


def named_page(place: str, titles: Mapping[str, str]) -> str:
    """Name a page, or a section of one, as readers find it who have no files of the documentation.

    Args:
        place: `gemm.md#few-rows`.
        titles: Of pages, by name of the file.
    """
    page, _, section = place.partition("#")
    return f'"{titles[page]}"' + (f", {section.replace('-', ' ')}" if section else "")
