"""Texts that try to break out of their display, and records that have one wherever reports have text.

None has lone surrogates: readers replace them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from itertools import cycle
from typing import Any, TypeVar

from msgspec import Struct

Record = TypeVar("Record")

RAN = "document.documentElement.dataset.ran=1"
"""What every script among the texts does, were it run: a test looks for the mark."""

SCRIPTS = (
    f"<script>{RAN}</script>",
    f"</script><script>{RAN}</script>",
    f"</SCRIPT\t><img src=x onerror={RAN}>",
    f"<!--<script>{RAN}//-->",
    f"]]></script><svg/onload={RAN}>",
    f'\'"><img/src/onerror="{RAN}"',
    f'" autofocus onfocus="{RAN}" x="',
    f"' onmouseover='{RAN}' style='position:fixed;inset:0' ",
    f"javascript:{RAN}//",
    f'<a href="javascript:{RAN}">k</a>',
    f'<iframe srcdoc="<script>parent.{RAN}</script>">',
    f'<object data="data:text/html,<script>{RAN}</script>">',
    f'<math><mi//xlink:href="data:x,<script>{RAN}</script>">',
    f"<details open ontoggle={RAN}>",
    f'<form><button formaction="javascript:{RAN}">k',
    f'<noscript><p title="</noscript><img src=x onerror={RAN}>">',
    f"<template><script>{RAN}</script></template>",
    f"<xmp></xmp><script>{RAN}</script>",
    f"<style></style><img src=x onerror={RAN}>",
    f"<title></title><script>{RAN}</script></textarea><script>{RAN}</script>",
    f"{{{{ constructor.constructor('{RAN}')() }}}}",
    f"${{{RAN}}}`;{RAN};`",
    f"\\u003cscript\\u003e{RAN}\\u003c/script\\u003e",
    f"\u2028{RAN}\u2029</script\u2028>",
    f'"}};{RAN};({{"a":"',
    f"*/;{RAN};/*",
    f"-->\n{RAN}\n<!--",
    f"+ADw-script+AD4-{RAN}+ADw-/script+AD4-",
)

REQUESTS = (
    "<img src=https://other.example/a><link rel=stylesheet href=//other.example/b>",
    "<meta http-equiv=refresh content='0;url=https://other.example/c'>",
    "<base href=https://other.example/><script src=d></script>",
    "}*{background:url(https://other.example/e)} @import 'https://other.example/f';",
    "url(https://other.example/g)",
    "<video poster=//other.example/h autoplay><source src=//other.example/i>",
    "<link rel=prefetch href=//other.example/j><link rel=dns-prefetch href=//other.example>",
    "https://other.example/k",
)

VEGA = (
    "{{7*7}} {% include '/etc/passwd' %} {{ config.__class__ }}",
    "datum['__proto__']; toString; __proto__; constructor; hasOwnProperty",
    '{"signal": "warn(\'x\')"}',
    "datum.k === 'k0' || event.view.alert(1)",
    "a\\.b[0]['c'] \\ \" ' ` / // /* %s %d $& $1",
)

TEXT = (
    "\u202egnp.exe\u2066\u2069\u200e\u200f\u202d\u061c bidi",
    "nul\x00 bell\x07 esc\x1b[31m\x1b]0;title\x07 c1\x9b2J del\x7f",
    "\r\n\t\x0b\x0c line \x85 breaks",
    "=cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd",
    "a\u0300" * 200,
    "\ufeff\ufffe\uffff\U0010ffff\U000e0001",
    "&lt;b&gt; &amp;#x3c;script&amp;#x3e; &#60;script&#62;",
    "",
    " ",
    "../../../../etc/passwd%00.html",
    "[x](javascript:alert(1)) | ![x](https://other.example/l) | `code` | <b>md</b>",
    "k" * 100_000,
    "<" * 20_000,
)

ALL = (*SCRIPTS, *REQUESTS, *VEGA, *TEXT)

_OURS = frozenset({"digest", "status", "workload", "compute_capability", "by", "severity", "id", "bound", "resource"})
"""Fields whose text is one of few that rooflens knows: no report can choose it."""


def hostile(record: Record, texts: Iterator[str] | None = None) -> Record:
    """Put the next text into every text field of a record, and of the records in it, that comes from a report."""
    texts = texts or cycle(ALL)
    values = {name: getattr(record, name) for name in type(record).__match_args__}  # type: ignore[attr-defined]
    return type(record)(**{name: value if name in _OURS else _hostile(value, texts) for name, value in values.items()})


def _hostile(value: Any, texts: Iterator[str]) -> Any:
    if isinstance(value, str):
        return next(texts)
    if isinstance(value, tuple):
        return tuple(_hostile(one, texts) for one in value)
    if isinstance(value, Struct) or is_dataclass(value):
        return hostile(value, texts)
    return value
