"""Limit how much of a report's compiled code is read: far more than real code needs, and seconds at most.

Reports come from strangers: a few kilobytes may unpack to a cubin whose names overlap, or whose line table has endless
rows. Work and memory grow only with the amounts counted here.
"""

from __future__ import annotations

from collections.abc import Mapping

CODE_BYTES = "bytes of compiled code"
NAME_BYTES = "bytes of names of sections and functions"
RELOCATIONS = "relocations of line tables"
TABLE_BYTES = "bytes of line tables"
FILES = "files and folders in line tables"
FILE_NAME_BYTES = "bytes of names of files"
ROWS = "rows of line tables"
SOURCE_BYTES = "bytes of source files"

MOST: Mapping[str, int] = {
    CODE_BYTES: 128 << 20,  # 2.6 MB; three copies exist while it is decoded
    NAME_BYTES: 8 << 20,  # 235 kB, of template arguments
    RELOCATIONS: 1 << 16,  # 10: one for each function, which has a section, and sections are counted in 16 bits
    TABLE_BYTES: 8 << 20,  # 78 kB; some 0.4 us each where each is an opcode
    FILES: 1 << 16,  # 71
    FILE_NAME_BYTES: 8 << 20,  # 3 kB
    ROWS: 1 << 19,  # 6,181, one in 13 bytes; some 250 bytes each
    SOURCE_BYTES: 16 << 20,  # 1.2 MB; divided into lines, 20 times that where these are short
}
"""What is counted -> the limit for one report. The comments give the maximum over 67 reports with code."""


class TooMuchCodeError(ValueError):
    """The report has more to read than real code ever has."""


class CodeBudget:
    """How much of a report may still be read."""

    def __init__(self) -> None:
        self.left = dict(MOST)

    def take(self, what: str, amount: int = 1) -> None:
        """Count an amount before it is read or kept.

        Raises:
            TooMuchError: The amount exceeds what is left.
        """
        self.left[what] -= amount
        if self.left[what] < 0:
            raise TooMuchCodeError(f"more than {MOST[what]:,} {what}")
