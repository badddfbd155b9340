"""Names of kernels as people write them."""

from __future__ import annotations

from functools import lru_cache

_SIGNATURES_KEPT = 1024


@lru_cache(maxsize=_SIGNATURES_KEPT)
def short_name(signature: str) -> str:
    """Drop the return type and the argument list of a demangled signature; keep template arguments.

    `void at::native::relu<float>(float *, int)` -> `at::native::relu<float>`.
    """
    depth, end = 0, len(signature)
    if signature.endswith(")"):
        for position in range(len(signature) - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(signature[position], 0)
            if depth == 0:
                end = position
                break
    return signature[:end].removeprefix("void ").strip() or signature
