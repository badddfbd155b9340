"""Style sheets and scripts of `assets`, put together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

from rooflens.report.html import theme


def joined(names: Iterable[str]) -> str:
    """Join files of `assets`, each named `folder/name`."""
    assets = files("rooflens.report").joinpath("assets")
    return "\n".join(assets.joinpath(name).read_text(encoding="utf-8") for name in names)


@lru_cache
def style_px(sheet: str, name: str) -> int:
    """Return a width that a style sheet of `assets` sets, so that what reckons with it has no copy: `--name: 12px`."""
    found = re.search(rf"--{name}: (\d+)px", joined((sheet,)))
    if found is None:
        raise KeyError(f"{sheet} sets no --{name}")
    return int(found[1])


def style(sheets: Iterable[str]) -> str:
    """Put the themes' colours before style sheets; paper is always light."""
    light = theme.css_variables(theme.LIGHT, dark=False)
    dark = theme.css_variables(theme.DARK, dark=True)
    rules = (
        f":root{{color-scheme:light;--font:{theme.FONT};{light}}}",
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}",
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}",
        joined(sheets),
    )
    return "\n".join(rules)
