"""Whatever text any field of a record holds, it is text on the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from support import samples
from support.rendered import rendered

from rooflens.model.records import Analysis, Nvidia, Rule

EVIL = "<img src=x onerror=1>"


def full() -> Analysis:
    """Make a kernel whose records have as many fields as a report fills."""
    one = samples.explained()
    rule = Rule("Rule", "Section", "A rule", "What it says.", speedup_pct=5.0)
    kernel = replace(one.kernel, rules=(rule,), nvtx_range="step/train", process="python 1", warp_opcodes={"FFMA": 5})
    return replace(one, kernel=kernel, nvidia=Nvidia("High Compute Throughput"))


def parts_of(value: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield what a record, a tuple or a mapping holds, the first few of several: its place, itself, and a setter."""
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield f".{name}", getattr(value, name), lambda one, name=name: replace(value, **{name: one})
    elif type(value) is tuple:
        for at, part in enumerate(value[:2]):
            yield f"[{at}]", part, lambda one, at=at: (*value[:at], one, *value[at + 1 :])
    elif isinstance(value, dict):
        for key in list(value)[:2]:
            yield f"[{key}]", value[key], lambda one, key=key: {**value, key: one}


def changed(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield a record as often as it has texts, each time with another one that is hostile, and the place of that."""
    if isinstance(value, str):
        yield place, f"{value}{EVIL}"
    for name, part, put in parts_of(value):
        yield from ((where, put(one)) for where, one in changed(part, place + name))


def test_any_text_of_any_record_is_text_on_the_page() -> None:
    """No field of a run or of an analysis becomes an element; names of ours that a text breaks end in an error."""
    run, analysis = samples.run(), full()
    made = [(place, one, analysis) for place, one in changed(run, "run")]
    made += [(place, run, one) for place, one in changed(analysis, "analysis")]
    offenders, shown, names_of_ours = [], 0, []
    for place, one, other in made:
        try:
            page = rendered(samples.reports([one], [other]), "title")
        except (KeyError, ValueError, StopIteration):  # not any text: the name of a class, a unit, a kind
            names_of_ours.append(place)
            continue
        offenders += [place] if EVIL in page else []
        shown += "&lt;img src=x onerror=1&gt;" in page
    assert offenders == []
    assert shown > 40
    assert len(names_of_ours) < len(made) / 2, names_of_ours
