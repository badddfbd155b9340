"""Metadata for a package index beyond `[project]`: author, addresses, and a README whose links work there.

`packaging/project.toml` has the only address. Links and pictures in README.md are relative to its place, which an index
does not know: in the description of a package they begin with that address and the tag of the version. While the
address is a placeholder that leads nowhere, the description is the unchanged README, and the index shows no links.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(?<!!)(\]\()(?![a-z]+:|#|/)([^)\s]+)(?=\))")
_PICTURE = re.compile(r'(!\[[^\]]*\]\(|\bsrc(?:set)?=")(?![a-z]+:|#|/)([^)"\s]+)(?=[)"])')


class CustomMetadataHook(MetadataHookInterface):
    """Called by hatchling for wheel and source archive."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add author, description and addresses."""
        root = Path(self.root)
        told = tomllib.loads((root / "packaging/project.toml").read_text("utf-8"))
        address, text = told["address"], (root / "README.md").read_text("utf-8")
        metadata["authors"] = [{"name": told["author"]}]
        if told["placeholder"] not in address:
            server = json.loads((root / "server.json").read_text("utf-8"))["name"]
            text = f"{led_from(text, address, metadata['version'])}\n<!-- mcp-name: {server} -->\n"
            metadata["urls"] = urls(address)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def urls(address: str) -> dict[str, str]:
    """Return the links beside a package, by the names for which indexes have icons."""
    file = f"{address}/blob/main"
    return {
        "Repository": address,
        "Documentation": f"{file}/docs/index.md",
        "Changelog": f"{file}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


def led_from(text: str, address: str, version: str) -> str:
    """Prefix every link and picture of a Markdown text with the address at the tag of the version."""
    text = _PICTURE.sub(rf"\g<1>{address}/raw/v{version}/\g<2>", text)
    return _LINK.sub(rf"\g<1>{address}/blob/v{version}/\g<2>", text)
