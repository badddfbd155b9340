"""Keep pandas out of our own processes: pyarrow imports it for the first array it makes, which takes 0.4 s.

Not out of a program that imports rooflens: whether that has pandas is its own affair.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Refusing:
    """The import hook that Python asks first: it says that there is no pandas."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Refuse pandas, and leave everything else to the next hook."""
        if name == "pandas":
            message = "pandas is kept out of this process"
            raise ModuleNotFoundError(message, name=name)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Let nothing import pandas within the block; if it was imported before, it stays.

    pyarrow then takes it as not installed, and looks for it again when it is asked for a frame after the block.
    """
    sys.meta_path.insert(0, _Refusing)
    try:
        yield
    finally:
        sys.meta_path.remove(_Refusing)
