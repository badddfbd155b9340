"""Globs for names: `*` and `…` match any text, `?` any character, everything else itself.

Names come from strangers, and may have a hundred thousand characters. Each part between two stars is searched once,
from left to right: the first match leaves the most text for the following parts. So matching takes linear time, whereas
backtracking takes the length to the power of the number of stars.
"""

from __future__ import annotations

import re
from functools import lru_cache

_ANY = re.compile("[*…]+")
_PATTERNS_KEPT = 256


@lru_cache(maxsize=_PATTERNS_KEPT)
def glob(pattern: str, *, begin: str = r"\A", end: str = r"\Z", ignore_case: bool = True) -> re.Pattern[str]:
    """Write a glob as a regular expression whose `match` takes linear time. Brackets are literal.

    Args:
        pattern: The glob.
        begin: What must precede the first character: a zero-width regular expression.
        end: What must follow the last character, likewise.
        ignore_case: Whether `a` matches `A`.
    """
    first, *rest = ("".join("." if sign == "?" else re.escape(sign) for sign in part) for part in _ANY.split(pattern))
    parts = [f"{begin}{first}", *rest]
    parts[-1] += end
    anywhere = "".join(f"(?>.*?{part})" for part in parts)
    return re.compile(rf"\A{anywhere}", re.DOTALL | (re.IGNORECASE if ignore_case else re.NOFLAG))


def covers(pattern: str, name: str) -> bool:
    """Return whether a glob matches a whole name, case-sensitively."""
    return glob(pattern, ignore_case=False).match(name) is not None
