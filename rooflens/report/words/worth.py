"""Whether another type is worth it for a measured kernel, in words; written here alone."""

from __future__ import annotations

from rooflens.format import factor
from rooflens.model.predict.other_gpu import WhatIf
from rooflens.model.verdict.sentences import resource_label


def worth_words(one: WhatIf) -> str:
    """Say whether another type is worth it: `fp16 is not worth it: 1.0x on FP32`; empty where nothing is known."""
    if one.dtype is None or one.factor is None:
        return ""
    where = "" if one.pipe is None else f" on {resource_label(one.pipe)}"
    if one.worth:
        return f"{one.dtype} is worth it where accuracy allows: about {factor(one.factor)}{where}"
    return f"{one.dtype} is not worth it: {factor(one.factor)}{where}"
