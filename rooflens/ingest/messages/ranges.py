"""The NVTX ranges that a result was launched in.

A report keeps each result's whole NVTX state: push/pop ranges as a stack for each thread and domain, start/end ranges
as a set for each domain, and for every range the last CUDA call before it began. Those calls order the ranges of all
domains and both kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Any

from rooflens.ingest.messages.messages import decode, text_of

_SEPARATOR = "/"


@lru_cache(maxsize=1024)
def range_path(state: bytes, thread_id: int) -> str | None:
    """Join the names of the open ranges from the outermost in: `train/step/forward`, `nccl:allreduce`.

    Names in the default domain stand alone, others follow the name of their domain. Start/end ranges hold for every
    thread, push/pop ranges for the one that opened them.

    Args:
        state: Encoded NvtxState; kernels of one range share theirs.
        thread_id: The launching thread.

    Returns:
        None where no range was open, or the state cannot be decoded.
    """
    decoded = decode("NvtxState", state) if state else None
    if decoded is None:
        return None
    domains = {domain.Id: text_of(domain.Name) for domain in decoded.Domains}
    labels = []
    for domain_id, name in open_ranges(decoded, thread_id):
        is_default = domain_id == decoded.DefaultDomain
        if name:
            domain = "" if is_default else f"{domains.get(domain_id) or domain_id}:"
            labels.append(f"{domain}{text_of(name)}")
    return _SEPARATOR.join(labels) or None


def open_ranges(state: Any, thread_id: int) -> list[tuple[int, bytes]]:
    """List domain and name of each range that is open around a launch, from the outermost in.

    Args:
        state: A decoded NvtxState.
        thread_id: The launching thread.
    """
    opened = sorted(_ranges(state, thread_id), key=lambda found: found[0])
    return [(domain_id, name) for _, domain_id, name in opened]


def _ranges(state: Any, thread_id: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield the last call before it, the domain and the name of every range; of equal calls the outer range first."""
    for domain in state.StartEndDomains:
        for found in sorted(domain.Ranges, key=lambda opened: opened.Id):
            yield found.LastApiCallId, domain.Id, found.Name
    for thread in state.Threads:
        if thread_id == thread.TID:
            for domain in thread.PushPopDomains:
                # A stack is in order whatever its calls say: versions that record none leave zeros.
                calls = accumulate((found.LastApiCallId for found in domain.Stack), max)
                for call, found in zip(calls, domain.Stack, strict=True):
                    yield call, domain.Id, found.Name
