"""The words of HTML that a browser's reader would read."""

from __future__ import annotations

from html.parser import HTMLParser


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - its signature
        """Separate the words of neighbours."""
        self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        """Keep one run of text."""
        self.parts.append(data)


def words_of(html: str) -> str:
    """Return the words of HTML with single spaces."""
    words = _Words()
    words.feed(html)
    return " ".join("".join(words.parts).split())
