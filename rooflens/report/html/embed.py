"""What makes the page safe and offline: JSON that cannot leave its script, the Vega bundle, the content policy."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import altair as alt
import vl_convert
from markupsafe import Markup

from rooflens.cache import cached_text

_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}

_EXPOSE = "window.vegaEmbed = vegaEmbed;"


def json_block(identifier: str, data: Any) -> Markup:
    """Embed data as a JSON script block; text in it can end neither the block nor a line of script."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)
    block = f'<script type="application/json" id="{identifier}">{text}</script>'
    return Markup(block)  # noqa: S704 -- the characters that HTML could act on are escaped above


@cache
def vega_bundle() -> str:
    """Bundle Vega, Vega-Lite and vega-embed of Altair's own version into one script that needs no network.

    Bundling takes seconds and gives the same script each time: it is kept in the user's cache.
    """
    vega_lite = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])

    def bundle() -> str:
        script: str = vl_convert.javascript_bundle(_EXPOSE, vl_version=vega_lite)
        return script

    return cached_text(f"vega-lite-{vega_lite}-vl-convert-{version('vl-convert-python')}.js", bundle)


@cache
def table_library() -> str:
    """Read the vendored DataTables with its licence (`assets/vendor/vendor.toml`); it runs the kernels table."""
    vendor = files("rooflens.report").joinpath("assets", "vendor")
    licence = vendor.joinpath("dataTables.LICENSE.txt").read_text(encoding="utf-8")
    return f"/*!\n{licence}*/\n{vendor.joinpath('dataTables.min.js').read_text(encoding='utf-8')}"


def script(code: str) -> Markup:
    """Make an inline script element of our own code; the content policy names it by `script_hash`."""
    if "</script" in code.lower() or "<!--" in code:
        raise ValueError("a script that ends or opens its own element cannot be embedded")
    return Markup(f"<script>{code}</script>")  # noqa: S704 -- our own code, checked above


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
