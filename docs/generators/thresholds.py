"""Write docs/reference/thresholds.md from thresholds.toml: each value with the reason beside it."""

from __future__ import annotations

import re
from pathlib import Path

from generators.texts import MADE, joined, table, unit_of
from rooflens.model.verdict import thresholds

_HEAD = f"""\
# Thresholds

Where one class of verdict ends and the next begins.

{MADE}

A file of the same shape, given with `--thresholds FILE`, overrides any of them; it holds only what it changes:

```toml
[thresholds]
bound_share = 0.5
```

The page, the JSON and the store say which thresholds they were made with. How a class is decided:
[Verdicts](../explanation/verdicts.md).
"""


def page() -> str:
    """Write the page."""
    text = Path(thresholds.__file__).with_name("thresholds.toml").read_text(encoding="utf-8")
    rows = re.findall(r"^(\w+) = (\S+)\s+# (.+)$", text, flags=re.MULTILINE)
    return joined(
        _HEAD,
        *table(
            ("name", "value", "unit", "meaning, and where it is from"),
            ((f"`{name}`", value, unit_of(name), meaning) for name, value, meaning in rows),
        ),
    )
