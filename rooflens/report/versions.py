"""Reports as a dimension of a page: what sets their names apart, and their order in time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from rooflens.format import natural
from rooflens.model.compare.pairing import REPORT_ENDINGS
from rooflens.model.records import Run

_ENDING = re.compile(f"(?:{'|'.join(map(re.escape, REPORT_ENDINGS))})$")

_WORDS = re.compile(r"[^\s._/\\@-]+|[\s._/\\@-]+")
"""A name in words and what stands between them."""


def report_labels(runs: Sequence[Run]) -> Mapping[str, str]:
    """Name each report by what sets it apart from the others: `v4` and `v5` of `v4_causal` and `v5_causal`.

    Returns:
        Label by digest, in the order of `in_time`; labels are never empty and never the same. Files of one name are
        named with as many of their folders as it takes.
    """
    ordered = in_time(runs)
    return dict(zip((run.digest for run in ordered), path_labels([run.source for run in ordered]), strict=True))


def path_labels(sources: Sequence[str]) -> list[str]:
    """Name paths by what sets them apart, as `report_labels` does."""
    paths = [PurePath(_ENDING.sub("", source.replace("\\", "/"))) for source in sources]
    names: list[str] = []
    for parts in range(1, max((len(path.parts) for path in paths), default=0) + 1):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len(set(names)) == len(names):
            break
    return _numbered(_apart(names)) if names else list(sources)


def in_time(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Order reports by the time they were recorded; those that do not say follow in the order of their names."""
    once = {run.digest: run for run in reversed(runs)}
    return tuple(sorted(once.values(), key=lambda run: (run.created_unix_s or float("inf"), natural(run.source))))


def _apart(names: Sequence[str]) -> list[str]:
    """Cut the words that all names begin and end with; a name that would become empty stays whole."""
    split = [_WORDS.findall(name) for name in names]
    shortest = min(len(words) for words in split)
    if len(names) == 1 or shortest == 0:
        return list(names)
    first = next((i for i in range(shortest) if len({words[i] for words in split}) > 1), shortest)
    room = shortest - first
    last = next((i for i in range(room) if len({words[-1 - i] for words in split}) > 1), room)
    cut = ["".join(words[first : len(words) - last]).strip(" ._/\\@-") for words in split]
    return [short or name for short, name in zip(cut, names, strict=True)]


def _numbered(names: Sequence[str]) -> list[str]:
    """Tell reports of one and the same path apart by a number."""
    amounts, seen = Counter(names), Counter[str]()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(f"{name} ({seen[name]})" if amounts[name] > 1 else name)
    return labels
