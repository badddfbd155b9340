"""One call of a tool, as a child process makes it: the answer in the words of a client, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from rooflens.errors import RooflensError
from rooflens.format import harmless
from rooflens.mcp.answers import Answers
from rooflens.mcp.root import Root
from rooflens.report.writers.markdown import unescaped

_TOOLS = (
    (re.compile(r"`rooflens (compare|hotspots|predict)\b[^`]*`"), r"`\1`"),
    (re.compile(r"`rooflens explain\b[^`]*`"), "`explain_kernel`"),
    (re.compile(r"`rooflens analyze\b[^`]*`"), "`open_report`"),
    (re.compile(r"`rooflens (about\b[^`]*)`"), r"`\1`"),
    (re.compile(r"(?:[;:]|, as)?\s*`rooflens (?:doctor|gpus|ingest|metrics|workloads)\b[^`]*`[^;.?\n]*"), ""),
)
"""Replace commands in answers, which a client cannot run, by the equivalent tool, or by nothing if there is no tool.

Commands that measure are kept: a person runs them, on a machine with a GPU.
"""


class CallOutcome(Struct, frozen=True):
    """What became of a call; nothing in it steers a terminal.

    Attributes:
        text: The answer, or in one line why there is none, with a hint.
        data: The same numbers as JSON; empty where there are none.
        is_error: Whether it is an error that the client can mend.
    """

    text: str
    data: Mapping[str, Any]
    is_error: bool = False


def made(folder: str, tool: str, given: Mapping[str, Any]) -> CallOutcome:
    """Make a call; what was read for an earlier one is kept.

    Args:
        folder: The folder that may be read.
        tool: Name of a method of `Answers`.
        given: Its arguments.
    """
    try:
        answer = getattr(_answers(folder), tool)(**given)
    except RooflensError as error:
        return refused(error)
    return CallOutcome(harmless(_for_client(unescaped(answer.text))), _harmless(answer.data))


def refused(error: RooflensError) -> CallOutcome:
    """Put an error into the words of a client."""
    message, hint = _for_client(str(error)), _for_client(error.hint)
    return CallOutcome(harmless(message + (f" (hint: {hint})" if hint else "")), {}, is_error=True)


@lru_cache(1)
def _answers(folder: str) -> Answers:
    return Answers(Root(Path(folder)))


def _harmless(value: Any) -> Any:
    """Remove control characters from all texts in a JSON value."""
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, Mapping):
        return {name: _harmless(one) for name, one in value.items()}
    return [_harmless(one) for one in value] if isinstance(value, (list, tuple)) else value


def _for_client(text: str) -> str:
    for command, tool in _TOOLS:
        text = command.sub(tool, text)
    return text
