"""The vendored Vega: `make vendor` writes it anew from the vl-convert that is installed, and a test makes it again.

After that `vendor.toml` takes the version of vl-convert and the digest that is printed; where packages came or went,
`vega.LICENSE.txt` takes their licences (`npm install vega vega-lite vega-embed` shows them all).
"""

from __future__ import annotations

import hashlib
import sys
from importlib.metadata import version
from pathlib import Path

import vl_convert

from rooflens.report.html.embed import VEGA_LITE

VEGA = "vega.min.js"


def bundle() -> str:
    """Bundle Vega, Vega-Lite and vega-embed into one script that needs no network; this takes seconds."""
    made: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE.rpartition(".")[0])
    return made


if __name__ == "__main__":
    code = bundle().encode()
    (Path(__file__).parents[2] / "rooflens" / "report" / "assets" / "vendor" / VEGA).write_bytes(code)
    digest = hashlib.sha256(code).hexdigest()
    sys.stdout.write(f"vl-convert-python {version('vl-convert-python')}, sha256 {digest}\n")
