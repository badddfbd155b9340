"""Measure the package as a whole: its files, lines, records, helpers that are used once, and pages.

    python benchmarks/house.py [ROOT]

Prints one line a measure, of the checkout at ROOT or of this one, so that two checkouts can be laid side by side.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

_RECORDS = {"Struct", "NamedTuple", "TypedDict"}


def measures(root: Path) -> dict[str, str]:
    """Measure the package and the docs of one checkout.

    Args:
        root: The folder that holds `rooflens` and `docs`.

    Returns:
        What was measured in words -> its number.
    """
    sources = [path.read_text("utf-8") for path in sorted((root / "rooflens").rglob("*.py"))]
    trees = [ast.parse(source) for source in sources]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    names = Counter(node.name for node in classes)
    helpers = [use for tree in trees for use in _uses_of_helpers(tree)]
    return {
        "files": f"{len(sources):,}",
        "lines": f"{sum(source.count(chr(10)) for source in sources):,}",
        "lines of code": f"{sum(map(_lines_of_code, trees)):,}",
        "record types": f"{sum(map(_is_record, classes)):,}",
        "class names used twice or more": f"{sum(times > 1 for times in names.values()):,}",
        "private functions used once": f"{helpers.count(1):,} of {len(helpers):,}",
        "pages of Markdown": f"{sum(1 for _ in (root / 'docs').rglob('*.md')):,}",
    }


def _lines_of_code(tree: ast.Module) -> int:
    """Count the lines that statements and expressions stand on: neither comments, nor docstrings, nor empty lines."""
    texts = {
        id(body[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and isinstance((body := node.body)[0] if node.body else None, ast.Expr)
        and isinstance(body[0].value, ast.Constant)  # type: ignore[attr-defined]
    }
    lines: set[int] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if id(node) in texts:
            continue
        if (first := getattr(node, "lineno", None)) is not None:
            lines |= {first, node.end_lineno}  # type: ignore[attr-defined]
        waiting += ast.iter_child_nodes(node)
    return len(lines)


def _is_record(node: ast.ClassDef) -> bool:
    bases = {base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases}
    return bool(bases & _RECORDS) or any("dataclass" in ast.unparse(one) for one in node.decorator_list)


def _uses_of_helpers(tree: ast.Module) -> list[int]:
    """Count how often each private function of a module is named in it, but for its own definition."""
    defined = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("_") and not node.name.startswith("__")
    ]
    named = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
    )
    return [named[name] for name in defined]


if __name__ == "__main__":
    for what, number in measures(Path(sys.argv[1] if sys.argv[1:] else Path(__file__).parents[1])).items():
        print(f"{what:<45}{number:>16}")
