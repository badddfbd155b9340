"""Globs over names of strangers."""

from __future__ import annotations

import re
import time
from random import Random

from rooflens.globs import covers, glob


def test_globs_cover_what_backtracking_says() -> None:
    """On short names globs agree with a backtracking regular expression; brackets are literal."""
    chance = Random(1)  # noqa: S311 - repeatable, not secret
    for _ in range(5000):
        pattern = "".join(chance.choice("ab*?[]") for _ in range(chance.randint(1, 7)))
        name = "".join(chance.choice("ab[]\n") for _ in range(chance.randint(0, 9)))
        slow = "".join({"*": ".*", "?": "."}.get(sign) or re.escape(sign) for sign in pattern)
        assert covers(pattern, name) == bool(re.fullmatch(slow, name, re.DOTALL)), (pattern, name)


def test_globs_with_many_stars_take_linear_time() -> None:
    """A glob that almost matches a name of 50,000 characters is fast: backtracking would take years."""
    started_s = time.process_time()
    for begin, end in ((r"\A", r"\Z"), (r"(?:(?<![^ ])|(?<=::))", r"\Z"), (r"(?<![^/])", r"(?![^/])")):
        for name in ("a" * 50_000, "a/" * 25_000, "a::" * 16_000):
            assert not glob("*a*a*a*a*a*a*a*a*a*b", begin=begin, end=end).match(name)
            assert not glob("a*a*a*a*a*a*a*a*a*a*b", begin=begin, end=end).match(name)
    assert time.process_time() - started_s < 5
