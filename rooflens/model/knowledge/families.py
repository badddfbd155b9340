"""Families of kernels that the documentation has a page of, known by the words that programmers name kernels with."""

from __future__ import annotations

import re
from types import MappingProxyType

WORDS = MappingProxyType(
    {
        "attention-decode": r"splitkv|paged|decode_?att|flash_?decod",
        "backward": r"_bwd|flash_bwd|backward|_wgrad|_dgrad",
        "attention-prefill": r"flash|attention|\battn|_attn|fmha",
        "cross-entropy": r"nll_?loss|cross_?entropy",
        "softmax": r"soft_?max",
        "normalisation": r"(?:layer|rms|batch|group)_?norm",
        "quantised-gemm": r"w4a16|marlin|\bawq|gptq|gemm_int4",
        "batched-gemm": r"grouped_?gemm|batched_?gemm|gemm_?batched|\bmoe_",
        "convolution": r"conv(?:olve|olution|2d|1d|3d|_fwd)|winograd|implicit_gemm",
        "gemv": r"gemv|mat_?vec",
        "gemm": r"gemm|mat_?mul|nvjet",
        "optimizer": r"\badam|_adam|\blamb_|sgd_",
        "embedding": r"embedding|gather|index_select|scatter_elements",
        "sort": r"radix_?sort|merge_?sort|_sort\b|\bsort_|bitonic",
        "histogram": r"histogram|bin_?count|scatter_add",
        "scan": r"\bscan|_scan|device_?scan|prefix_?sum|device_?select",
        "random": r"curand|philox|distribution_elementwise|monte_?carlo",
        "reduction": r"reduc(?:e|tion)",
        "sparse": r"sp_?m[vm]\b|spmv|spmm|\bcsr",
        "fft": r"\bfft|_fft|vkfft|regular_fft",
        "pairs": r"n_?body",
        "stencil": r"stencil|jacobi|laplac",
        "copy-transpose": r"transpose|\bcopy|_copy|memcpy|memset|\bfill",
        "elementwise": r"element_?wise|axpy|(?:vec|vector|matrix)_?add",
    }
)
"""Page of docs/kernels -> what the names of its kernels hold, in lower case; the first that fits counts."""
_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def family_page(function_name: str) -> str | None:
    """Return the page of a kernel's family, `docs/kernels/gemm.md`; None for names that tell none."""
    name = _CAPITALS.sub("_", function_name).lower()
    page = next((page for page, words in WORDS.items() if re.search(words, name)), None)
    return page and f"docs/kernels/{page}.md"
