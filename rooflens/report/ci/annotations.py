"""GitHub's workflow commands: a line of a step's log that annotates a line of the code in a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from rooflens.format import cut_name, percent, plain_name, printable
from rooflens.model.counters.balance import STALLS
from rooflens.model.hotspots import leading_stall
from rooflens.model.records import Hotspot, ratio
from rooflens.report.ci.places import in_checkout
from rooflens.report.text.hotspots import Listing

TITLE_WIDTH = 100

_COMMAND = re.compile(r"(?m)^(\s*)::")
_OLD_COMMAND = "##["
_JOINER = "\u2060"


class Annotation(Struct, frozen=True):
    """The annotation of one line of code.

    Attributes:
        level: What GitHub shows it as.
        file: Path as the report has it.
        line: From 1.
    """

    level: Literal["warning", "notice"]
    file: str
    line: int
    title: str
    text: str


def commands(annotations: Iterable[Annotation], root: Path) -> str:
    """Write a workflow command for each line in a file of the checkout, named from its root; leave out all others."""
    placed = ((one, in_checkout(one.file, root)) for one in annotations)
    return "".join(
        f"::{one.level} file={_property(file)},line={one.line},"
        f"title={_property(cut_name(one.title, TITLE_WIDTH))}::{_data(one.text)}\n"
        for one, file in placed
        if file is not None
    )


def of_hotspots(shown: Iterable[Listing]) -> list[Annotation]:
    """Annotate each hot line of each kernel; lines without a file are left out."""
    return [
        Annotation("warning", hotspot.file, hotspot.line, plain_name(listing.kernel.name), _said(listing, hotspot))
        for listing in shown
        for hotspot in listing.hotspots
        if hotspot.file and hotspot.line
    ]


def _said(listing: Listing, hotspot: Hotspot) -> str:
    waits = STALLS.get(leading_stall(hotspot) or "")
    share = ratio(hotspot.measures.get("samples", 0.0), listing.kernel.code_totals.get("samples"))
    return f"{percent(share)} of the samples{f'; it mostly {waits}' if waits else ''}"


def inert(text: str) -> str:
    """Defuse text that GitHub would obey in a log: lines that begin like a command, and the old command syntax."""
    return _COMMAND.sub(rf"\1:{_JOINER}:", text).replace(_OLD_COMMAND, f"#{_JOINER}#[")


def _data(text: str) -> str:
    """Escape the text of a workflow command, which ends with its line."""
    return printable(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    """Escape a property of a workflow command, which ends with a comma or a colon as well."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
