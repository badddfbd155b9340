"""`python -m support.reference` in tests/: write the pages, and say which changed."""

import sys

from support.reference import write

sys.stdout.write("".join(f"docs/reference/{name}\n" for name in write()))
