"""Replacement for `nvcc` in tests: every program it compiles prints one line and succeeds."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SCRIPT = """#!/bin/sh
if [ "$1" = --version ]; then echo "Cuda compilation tools, release 13.0, V13.0.1"; exit 0; fi
while [ $# -gt 1 ]; do
  if [ "$1" = -o ]; then output=$2; fi
  shift
done
printf '#!/bin/sh\\necho %s\\n' {line} > "$output"
chmod +x "$output"
"""


def install(folder: Path, line: Mapping[str, Any]) -> Path:
    """Install an `nvcc` in a folder, whose programs print `line` as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "nvcc"
    path.write_text(_SCRIPT.replace("{line}", shlex.quote(shlex.quote(json.dumps(dict(line))))))
    path.chmod(0o755)
    return path
