"""Keep pandas out of processes of our own: pyarrow imports it for the first array it makes, which takes 0.4 s.

Not out of a program that imports rooflens: there pandas is the program's affair.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Refusing:
    """What Python asks for a module first; it knows one that there is not."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Refuse pandas, and leave everything else to the next one."""
        if name == "pandas":
            message = "pandas is kept out of this process"
            raise ModuleNotFoundError(message, name=name)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Let nobody import pandas within the block; what was imported before stays.

    pyarrow then takes it for not installed. Asked for a frame later on, it looks for it again.
    """
    sys.meta_path.insert(0, _Refusing)
    try:
        yield
    finally:
        sys.meta_path.remove(_Refusing)
