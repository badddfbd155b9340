"""Snapshots of chart specifications: sorted JSON in `tests/report/snapshots`, so that a change is a reviewable diff.

`ROOFLENS_REWRITE=1 pytest tests/report` rewrites them; read the diff before keeping it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "report" / "snapshots"
SWITCH = "ROOFLENS_REWRITE"

DIGITS = 6
"""Significant digits kept: the last ones of a float differ between machines."""


def check_snapshot(name: str, spec: dict[str, Any]) -> None:
    """Compare a specification with the stored one, or store it if the switch is set."""
    path = FOLDER / f"{name}.json"
    text = json.dumps(_rounded(spec), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if os.environ.get(SWITCH) == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    stored = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text == stored, f"the chart `{name}` changed; {SWITCH}=1 writes its snapshot anew"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value
