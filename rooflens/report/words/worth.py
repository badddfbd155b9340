"""Whether another type is worth it for a measured kernel, in words; written here alone."""

from __future__ import annotations

from rooflens.format import factor
from rooflens.model.predict.other_gpu import WhatIf
from rooflens.model.roofline.unit_names import resource_label


def worth_words(what_if: WhatIf) -> str:
    """Say whether another type is worth it: `fp16 is not worth it: 1.0x on FP32`; empty where nothing is known."""
    if what_if.dtype is None or what_if.factor is None:
        return ""
    where = "" if what_if.pipe is None else f" on {resource_label(what_if.pipe)}"
    if what_if.worth and what_if.side == "memory":
        return (
            f"{what_if.dtype} is worth it where accuracy allows: at best {factor(what_if.factor)}, as fewer bytes move"
        )
    if what_if.worth:
        return f"{what_if.dtype} is worth it where accuracy allows: about {factor(what_if.factor)}{where}"
    return f"{what_if.dtype} is not worth it: {factor(what_if.factor)}{where}"


def best_in_type(what_if: WhatIf | None) -> str:
    """Say what a narrower type brings at best: `At best 2.0x in fp16`; empty where it brings nothing."""
    return (
        f"At best {factor(what_if.factor)} in {what_if.dtype}"
        if what_if is not None and what_if.worth and what_if.factor
        else ""
    )
