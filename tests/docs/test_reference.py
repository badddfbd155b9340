"""The pages of the reference that are made of the code say what the code says."""

from __future__ import annotations

import os

import pytest
from support.reference import FOLDER, PAGES
from support.snapshots import SWITCH


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_says(name: str) -> None:
    """Commands, fields, columns, metrics and thresholds stand in the reference as they are, each with its meaning."""
    text = PAGES[name]()
    if os.environ.get(SWITCH) == "1":
        (FOLDER / name).write_text(text, encoding="utf-8")
    assert (FOLDER / name).read_text(encoding="utf-8") == text, f"`make reference` or {SWITCH}=1 writes it anew"
    assert all(cell.strip() for row in text.splitlines() if row.startswith("| `") for cell in row.split(" | ")[-1:])
