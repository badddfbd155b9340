"""The table of operations, which `operations.toml` has: what each must compute and move, by formulas over its sizes."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from rooflens.errors import UnknownNameError
from rooflens.model.predict import communication, formulas
from rooflens.model.predict.rows import Amount, Operation, Part, Size, Sizes

_NAMED = ("parts", "fused_parts")
"""Keys that name a function of `formulas.py`."""
_WRITTEN = ("summary", "unit", "fused", "sent_source", "dtype")
"""Keys whose values are what is written; other texts name numbers of `formulas.py`."""
_TEXTS = ("flop_source", "bytes_source", "extra_costs")


def _operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    """Make the record of each row."""
    rows = document["operation"]
    known = {**vars(communication), **vars(formulas), **document["unless_given"], "__builtins__": {"max": max}}
    for name, own in rows.items():
        row = {**rows.get(own.get("like"), {}), **own}
        row.pop("like", None)
        sizes = tuple(_sizes(row.pop("sizes"), document))
        names = {size.name for size in sizes} | {"element_bytes"}
        algorithms = {way: known[sent] for way, sent in row.pop("algorithms", {}).items()}
        made: dict[str, Any] = {key: row.pop(key) for key in _WRITTEN if key in row}
        made |= {key: row.pop(key).format_map(known) for key in _TEXTS if key in row}
        made |= {key: known[row.pop(key)] for key in _NAMED if key in row}
        made |= {key: _formula(text, names, known) for key, text in row.items()}
        if kept := made.pop("kept", None):
            made["elements"], made["extra_bytes"] = _fused(made["parts"], kept)
        if "l2_bytes" in made:
            made["l2_bytes"] = _of_widths(made["l2_bytes"])
        yield Operation(name=name, sizes=sizes, algorithms=algorithms, **made)


def _sizes(given: Iterable[str | Mapping[str, Any]], document: Mapping[str, Any]) -> Iterator[Size]:
    """Make the sizes of a row: its own, those that it shares with others, and groups of these."""
    for one in given:
        if not isinstance(one, str):
            yield Size(**one)
        elif one in document["group"]:
            yield from _sizes(document["group"][one], document)
        else:
            yield Size(**{"name": one, **document["size"][one]})


def _formula(text: str, sizes: set[str], known: dict[str, Any]) -> Amount:
    """Compile a formula, or return the function that it names.

    Raises:
        NameError: It has a name that is neither a size of its row nor known.
    """
    if text not in sizes and callable(function := known.get(text)):
        return cast("Amount", function)
    code = compile(f"({text})", "operations.toml", "eval")
    if unknown := {*code.co_names} - sizes - known.keys() - {"max"}:
        raise NameError(f"`{text}` has no size {', '.join(sorted(unknown))}")
    return lambda sizes: eval(code, known, sizes)  # noqa: S307 - of our own table


def _of_widths(formula: Amount) -> Callable[[Sizes, float], float]:
    def bytes_of(sizes: Sizes, element_bytes: float) -> float:
        known: dict[str, Any] = {**sizes, "element_bytes": element_bytes}
        return formula(known)

    return bytes_of


def _fused(parts: Callable[[Sizes], Iterator[Part]], kept: Amount) -> tuple[Amount, Amount]:
    """Count what one kernel for all parts moves: their weights, each once, and what it keeps of the rest."""
    return (
        lambda sizes: formulas.weight_elements(parts(sizes)) + kept(sizes),
        lambda sizes: formulas.weight_bytes(parts(sizes)),
    )


OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        row.name: row
        for row in _operations(tomllib.loads(Path(__file__).with_name("operations.toml").read_text("utf-8")))
    }
)
"""The table by name; adding a row adds the operation everywhere."""


_SYNONYMS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("add", "copy", "gelu", "map", "relu"), "elementwise"),
        **dict.fromkeys(("axpy", "daxpy"), "saxpy"),
        **dict.fromkeys(("matvec", "mv"), "gemv"),
        **dict.fromkeys(("dense", "linear", "matmul", "mm"), "gemm"),
        **dict.fromkeys(("flash", "flash-attention", "mha", "sdpa"), "attention-flash"),
        "bmm": "batched-gemm",
        "feed-forward": "mlp",
        "paged-attention": "attention-decode",
        "loss": "cross-entropy",
    }
)
"""Other names of operations, for hints."""


def the_operation(name: str) -> Operation:
    """Find an operation by its name, or by another word for it.

    Raises:
        UsageError: No operation has that name; the hint lists similar names, or all.
    """
    known = name if name in OPERATIONS else _SYNONYMS.get(name.casefold(), "")
    if known not in OPERATIONS:
        raise UnknownNameError("operation", name, OPERATIONS)
    return OPERATIONS[known]
