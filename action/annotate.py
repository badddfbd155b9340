"""Annotate in a pull request the source lines that got slower, as listed by `rooflens compare --format json`.

A step of `action.yml`: it reads the JSON from stdin and prints GitHub's workflow command for each line that is in the
checkout. Standard library only.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ANNOTATIONS = 10
"""GitHub shows so many of each level and step."""

FLOOR_NS = 2000.0
"""The floor of `rooflens compare`, for a comparison without a gate."""


def main() -> None:
    """Print a command for each line, once, most time lost first; count those outside the checkout."""
    root = Path(os.environ["GITHUB_WORKSPACE"]).resolve()
    commands: dict[tuple[str, int], str] = {}
    outside = []
    for level, kernel, line in sorted(
        slower_lines(json.load(sys.stdin)), key=lambda one: (one[0] != "warning", -lost(one[2]))
    ):
        if (file := in_checkout(line["file"], root)) is None:
            outside.append(line["file"])
            continue
        title = f"slower: {kernel['head']['name']}"[:100]
        place = f"file={escaped(file, ':,')},line={line['line']},title={escaped(title, ':,')}"
        commands.setdefault((file, line["line"]), f"::{level} {place}::{escaped(said(kernel, line))}\n")
    sys.stdout.writelines(list(commands.values())[:MAX_ANNOTATIONS])
    if outside:
        sys.stdout.write(
            f"lines outside this checkout that got slower: {len(outside)}, the first in {escaped(outside[0])}\n"
        )


def slower_lines(compared: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield the lines of kernels that a gate would call slower: `warning` beyond noise, `notice` for single runs."""
    floor_ns = (compared["gate"] or {"floor_ns": FLOOR_NS})["floor_ns"]
    for kernel in (kernel for program in compared["programs"] for kernel in program["kernels"]):
        time = kernel["mean_launch"]
        level = {"slower": "warning", "single": "notice"}.get(time["outcome"])
        if level and kernel["slower_lines"] and time["change"] > time["threshold"]:
            lost_ns = time["head_ns"]["median"] - time["base_ns"]["median"]
            if lost_ns * min(kernel["launches"].values()) > floor_ns:
                yield from ((level, kernel, line) for line in kernel["slower_lines"])


def lost(line: dict[str, Any]) -> float:
    """Return how many nanoseconds longer a line takes."""
    return float(line["after_ns"] - (line["before_ns"] or 0.0))


def said(kernel: dict[str, Any], line: dict[str, Any]) -> str:
    """Describe the time of a line before and after, its share of the loss, and the change of its kernel."""
    before = "not among the hottest" if line["before_ns"] is None else f"{line['before_ns'] / 1e3:,.1f} us"
    times = f"{before} -> {line['after_ns'] / 1e3:,.1f} us, {line['share']:.0%} of the time lost"
    number = "" if line["matched_by_text"] else "; lines are matched by number"
    return f"this line: {times}{number}; the kernel: {kernel['sentence']}"


def in_checkout(file: str, root: Path) -> str | None:
    """Return the path of a source file from the root of the checkout, with slashes; None if it is outside.

    Reports have the paths of the machine that compiled: the longest end of a path that leads to a file here is used.
    """
    path = PurePosixPath(file.replace("\\", "/"))
    parts = [part for part in (path.relative_to(root) if path.is_relative_to(root) else path).parts if part != "/"]
    if ".." in parts or "\0" in file or len(file) > os.pathconf(root, "PC_PATH_MAX"):
        return None
    return next((end for i in range(len(parts)) if (root / (end := "/".join(parts[i:]))).is_file()), None)


def escaped(text: str, ends: str = "") -> str:
    """Escape characters that end a workflow command or a property; other control characters become spaces."""
    text = re.sub(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]", " ", text)
    return re.sub(rf"[%\r\n{ends}]", lambda mark: f"%{ord(mark[0]):02X}", text)


if __name__ == "__main__":
    main()
