"""Attention of one new token over a KV cache in pages, as servers store it: each sequence has a list of pages.

The pages of a sequence lie anywhere. `gathered` copies them together before attention reads them: three trips through
the cache. A kernel that follows the list itself makes one trip, as `in_place` does for pages that happen to lie in
order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name all of PyTorch's documentation uses

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLERANCE = {"bf16": 2e-2}
"""Probabilities and result are each rounded to 8 bits (2**-9); parts of a split cache are rescaled when joined."""


@dataclass(frozen=True, slots=True)
class PagedInputs:
    """Query of batch x query heads x 1 x width; keys and values of pages x cache heads x page x width.

    Attributes:
        pages: Page numbers of each sequence, batch x pages per sequence.
        gather: Copy the pages together; otherwise they lie in order and are read in place.
    """

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    pages: torch.Tensor
    gather: bool


def prepare(parameters: Mapping[str, int], dtype: torch.dtype, device: torch.device) -> tuple[PagedInputs]:
    """Make one query token, a pool of pages, and the list of pages: shuffled, or in order."""
    batch, width, page = parameters["batch"], parameters["width"], parameters["page"]
    count = batch * parameters["length"] // page
    pool = (count, page, parameters["cache_heads"], width)
    query = torch.randn(batch, parameters["query_heads"], 1, width, dtype=dtype, device=device)
    key, value = (torch.randn(pool, dtype=dtype, device=device) for _ in range(2))
    gather = bool(parameters["gather"])
    numbers = torch.randperm(count, device=device) if gather else torch.arange(count, device=device)
    return (PagedInputs(query, key, value, numbers.reshape(batch, -1), gather),)


def run(state: PagedInputs) -> torch.Tensor:
    """Bring the cache into sequence order and attend to all of it."""
    key, value = (_gathered_cache(state, cache) for cache in (state.key, state.value))
    return F.scaled_dot_product_attention(state.query, key, value, enable_gqa=True)


def _gathered_cache(state: PagedInputs, cache: torch.Tensor) -> torch.Tensor:
    """Return the cache as batch x cache heads x length x width: a copy, or a view."""
    batch, (_, _, heads, width) = len(state.pages), cache.shape
    pages = cache.index_select(0, state.pages.flatten()) if state.gather else cache
    return pages.reshape(batch, -1, heads, width).transpose(1, 2)


def reference(state: PagedInputs) -> torch.Tensor:
    """Follow the page list in float64, one sequence at a time."""
    return torch.stack(
        [_attend_pages(query, state, pages) for query, pages in zip(state.query, state.pages, strict=True)]
    )


def _attend_pages(query: torch.Tensor, state: PagedInputs, pages: torch.Tensor) -> torch.Tensor:
    key, value = (torch.cat([cache[page] for page in pages]).double() for cache in (state.key, state.value))
    grouped = query.double().reshape(key.shape[1], -1, query.shape[-1])
    scores = grouped @ key.permute(1, 2, 0) / math.sqrt(query.shape[-1])
    return (torch.softmax(scores, dim=-1) @ value.transpose(0, 1)).reshape(query.shape)
