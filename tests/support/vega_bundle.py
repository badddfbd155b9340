"""The vendored Vega: `make vendor` writes it anew from the vl-convert that is installed, and a test makes it again.

After that `vendor.toml` takes the version of vl-convert, the digest and the packages that are printed; where packages
came or went, `vega.LICENSE.txt` takes their licences (`npm install vega vega-lite vega-embed` shows them all).
"""

from __future__ import annotations

import hashlib
import re
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


_MODULE = re.compile(rb"Original file: /npm/([\w.-]+@[\w.-]+)/(.*?)//# sourceMappingURL=", re.DOTALL)
_IMPORT = re.compile(rb'(?:from|import)"/npm/([\w.-]+@[\w.-]+)/')


def packages_of(name: str) -> list[str]:
    """Follow the imports of `a 1.0 with b 2.0 and c 3.0` through what vl-convert carries: `a 1.0`, each package once.

    vl-convert carries every Vega-Lite it can write for, and gives vega-embed the one that was asked for.
    """
    (binary,) = Path(vl_convert.__file__).parent.glob("vl_convert.*.so")
    imports = {found[1]: set(_IMPORT.findall(found[2])) for found in _MODULE.finditer(binary.read_bytes())}
    left = {"@".join(pair).encode() for pair in re.findall(r"([\w-]+) ([\d.]+)", name)}
    found: set[bytes] = set()
    while left:
        package = left.pop()
        found.add(package)
        left |= {one for one in imports[package] if not one.startswith(b"vega-lite@")} - found
    return sorted(package.decode().replace("@", " ") for package in found)


if __name__ == "__main__":
    code = bundle().encode()
    (Path(__file__).parents[2] / "rooflens" / "report" / "assets" / "vendor" / VEGA).write_bytes(code)
    digest = hashlib.sha256(code).hexdigest()
    sys.stdout.write(f"vl-convert-python {version('vl-convert-python')}, sha256 {digest}\n")
    parts = (
        f"vega {vl_convert.get_vega_version()} vega-embed {vl_convert.get_vega_embed_version()} vega-lite {VEGA_LITE}"
    )
    sys.stdout.writelines(f"{package}\n" for package in packages_of(parts))
