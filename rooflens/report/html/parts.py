"""What all pages are made of: facts in a line, signs, bars, and what scrolls sideways."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from rooflens.format import unbroken
from rooflens.model.verdict_classes import bound_of
from rooflens.report.html.theme import LOOKS, css_class, is_hollow


def facts_line(words: Sequence[str]) -> Markup:
    """Write short facts in one line."""
    spans = Markup("").join(Markup("<span>{}</span>").format(unbroken(word)) for word in words)
    return Markup('<p class="facts">{}</p>').format(spans) if words else Markup("")


def scrolling(label: str, inner: Markup) -> Markup:
    """Let a reader scroll sideways what may be wider than its room, by keyboard too."""
    return Markup('<div class="scroll" tabindex="0" role="region" aria-label="{}">{}</div>').format(label, inner)


def code_spans(text: str) -> Markup:
    """Escape text and set text between backticks as code."""
    parts = unbroken(text).split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    spans = (escape(part) if i % 2 == 0 else Markup("<code>{}</code>").format(part) for i, part in enumerate(parts))
    return Markup("").join(spans)


def shape(bound: str) -> Markup:
    """Draw the sign of a verdict class, hollow where it is open."""
    hollow = " hollow" if is_hollow(bound) else ""
    sign = f'<svg class="shape{hollow}" style="color:var(--{bound_of(bound)})" viewBox="0 0 12 12" aria-hidden="true">'
    return Markup(f'{sign}<path d="{LOOKS[bound].path}"/></svg>')  # noqa: S704 -- of our own table of looks


def meter(length: float, parts: Sequence[tuple[str, float]], won: float) -> Markup:
    """Draw a time as a bar in the colours of its classes, the part that can be won hatched at its end.

    Args:
        length: Of the bar, as a part of the longest one's.
        parts: Classes with their parts of the bar, which sum to 1.
        won: The part of it that can be won; 0 if that is unknown.
    """
    fills = Markup("").join(
        Markup('<i class="fill {}" data-bound="{}" style="flex-grow:{:.4f}"></i>').format(css_class(kind), kind, part)
        for kind, part in parts
    )
    hatched = Markup('<u style="width:{:.1f}%"></u>').format(100 * won) if won else ""
    whole = Markup('<div class="meter" aria-hidden="true"><span style="width:{:.2f}%">{}{}</span></div>')
    return whole.format(100 * length, fills, hatched)


def bar(share: float | None, kind: str) -> Markup:
    """Draw a share, 0 to 1, as a bar in the colour of its kind."""
    width = 100 * min(share or 0.0, 1.0)
    return Markup('<span class="bar {}"><i style="width:{:.2f}%"></i></span>').format(css_class(kind), width)
