"""Whether another type is worth it for a measured kernel, in words; written here alone."""

from __future__ import annotations

from rooflens.format import factor
from rooflens.model.predict.other_gpu import WhatIf
from rooflens.model.roofline.unit_names import resource_label


def worth_words(one: WhatIf) -> str:
    """Say whether another type is worth it: `fp16 is not worth it: 1.0x on FP32`; empty where nothing is known."""
    if one.dtype is None or one.factor is None:
        return ""
    where = "" if one.pipe is None else f" on {resource_label(one.pipe)}"
    if one.worth and one.side == "memory":
        return f"{one.dtype} is worth it where accuracy allows: at best {factor(one.factor)}, as fewer bytes move"
    if one.worth:
        return f"{one.dtype} is worth it where accuracy allows: about {factor(one.factor)}{where}"
    return f"{one.dtype} is not worth it: {factor(one.factor)}{where}"


def best_in_type(one: WhatIf | None) -> str:
    """Say what a narrower type brings at best: `At best 2.0x in fp16`; empty where it brings nothing."""
    return f"At best {factor(one.factor)} in {one.dtype}" if one is not None and one.worth and one.factor else ""
