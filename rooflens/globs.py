"""Globs over names: `*` and `…` stand for any text, `?` for any character, and all else for itself.

Names are a stranger's, and may have a hundred thousand characters. A part between two stars is looked for once, from
left to right, and never again elsewhere: the first place where it stands leaves the most to what follows. So a match
takes time with the length of the name, which backtracking raises to the power of the number of stars.
"""

from __future__ import annotations

import re
from functools import lru_cache

_ANY = re.compile("[*…]+")
_KEPT = 256


@lru_cache(maxsize=_KEPT)
def glob(pattern: str, *, begin: str = r"\A", end: str = r"\Z", ignore_case: bool = True) -> re.Pattern[str]:
    """Write a glob as a regular expression whose `match` takes linear time. Brackets stand for themselves.

    Args:
        pattern: The glob.
        begin: What stands before the first character that it covers: a regular expression without width.
        end: The same after the last.
        ignore_case: Whether `a` matches `A`.
    """
    first, *rest = ("".join("." if sign == "?" else re.escape(sign) for sign in part) for part in _ANY.split(pattern))
    parts = [f"{begin}{first}", *rest]
    parts[-1] += end
    anywhere = "".join(f"(?>.*?{part})" for part in parts)
    return re.compile(rf"\A{anywhere}", re.DOTALL | (re.IGNORECASE if ignore_case else re.NOFLAG))


def covers(pattern: str, name: str) -> bool:
    """Return whether a glob covers a whole name, by its letters as they are written."""
    return glob(pattern, ignore_case=False).match(name) is not None
