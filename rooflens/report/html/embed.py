"""What makes the page safe and offline: JSON that cannot leave its script, the Vega bundle, the content policy."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup

_ESCAPES = {char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}

VEGA_LITE = "6.4.1"
"""Version of the vendored Vega-Lite, which all charts are written for."""


def json_text(data: Any) -> Markup:
    """Write data as JSON for a script block; text in it can end neither the block nor a line of script."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char, escape in _ESCAPES.items():  # a tenth of the time of `translate`
        text = text.replace(char, escape)
    return Markup(text)  # noqa: S704 -- the characters that HTML could act on are escaped above


@cache
def vega_bundle() -> str:
    """Read the vendored Vega, Vega-Lite and vega-embed; it draws the charts."""
    return _vendored("vega.min.js")


@cache
def table_library() -> str:
    """Read the vendored DataTables; it runs the kernels table."""
    return _vendored("dataTables.min.js")


def _vendored(name: str) -> str:
    """Read a script of others with its licence before it (`assets/vendor/vendor.toml`)."""
    vendor = files("rooflens.report").joinpath("assets", "vendor")
    licence = vendor.joinpath(f"{name.partition('.')[0]}.LICENSE.txt").read_text(encoding="utf-8")
    return f"/*!\n{licence}*/\n{vendor.joinpath(name).read_text(encoding='utf-8')}"


def safe_script(code: str) -> Markup:
    """Let our own code stand in an inline script element; the content policy names it by `script_hash`."""
    if "</script" in code.lower() or "<!--" in code:
        raise ValueError("a script that ends or opens its own element cannot be embedded")
    return Markup(code)  # noqa: S704 -- our own code, checked above


def script_hash(code: str) -> str:
    """Name an inline script for the content policy by its SHA-256."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"


def content_policy(*scripts: str) -> str:
    """Allow these scripts, inline styles and data images; nothing may be fetched, posted or evaluated."""
    allowed = " ".join(script_hash(code) for code in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
