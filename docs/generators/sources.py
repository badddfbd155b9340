"""Map each generated page to the file of the repository that it is generated from.

Handwritten pages link to that file, so that no link of a clone is dead; on the site the same link leads to the page.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
_KNOWLEDGE = "rooflens/model/knowledge"
_OF_PAGES = {
    "cli.md": "rooflens/cli/commands",
    "columns.md": "docs/generators/columns.toml",
    "forecast.md": "rooflens/report/forecast.schema.json",
    "json.md": "rooflens/report/analysis.schema.json",
    "metrics.md": "rooflens/model/counters/table.py",
    "thresholds.md": "rooflens/model/verdict/thresholds.toml",
}
_LINK = re.compile(r"(?<=\]\()[^)#\s:]+(?=[)#])")


def source_of(page: str) -> str:
    """Return the file of the repository, from the root, that a page below docs/reference is generated from."""
    if page in _OF_PAGES:
        return _OF_PAGES[page]
    place = Path(page)
    kind = f"{_KNOWLEDGE}/{place.parent}"
    return kind if place.name == "index.md" else f"{kind}/{place.stem}.toml"


@cache
def _pages() -> Mapping[str, str]:
    from generators import PAGES  # noqa: PLC0415 - which imports what this file is beside

    return {source_of(page): f"docs/reference/{page}" for page in PAGES}


def to_site(text: str, page: Path) -> str:
    """Let links to such a file lead to the page generated from it.

    Args:
        text: Markdown.
        page: The file that contains it.
    """

    def led(match: re.Match[str]) -> str:
        target = os.path.relpath(os.path.normpath(page.parent / match[0]), ROOT)
        made = _pages().get(Path(target).as_posix())
        return Path(os.path.relpath(ROOT / made, page.parent)).as_posix() if made else match[0]

    return _LINK.sub(led, text)
