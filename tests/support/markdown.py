"""Read the project's Markdown: links, anchors of headings, lists of contents, and code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from generators.sources import to_site
from markdown_it import MarkdownIt
from markdown_it.token import Token


def links(page: Path) -> Iterator[str]:
    """Return the targets of a page's links and pictures inside the repository, including those in HTML."""
    targets = [str(token.attrGet("href") or token.attrGet("src") or "") for token in _inline(page)]
    written = "".join(token.content for token in (*_parsed(page), *_inline(page)) if token.type.startswith("html_"))
    targets += re.findall(r"(?:href|src|srcset)=\"([^\"]+)\"", written)
    yield from (target for target in targets if target and not re.match(r"[a-z]+:", target))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as GitHub and MyST make them."""
    found: list[str] = []
    tokens = _parsed(page)
    for opening, title in pairwise(tokens):
        if opening.type == "heading_open":
            text = "".join(child.content for child in title.children or () if child.type in {"text", "code_inline"})
            slug = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
            seen = sum(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", other) is not None for other in found)
            found.append(f"{slug}-{seen}" if seen else slug)
    return frozenset(found)


def contents(index: Path) -> list[str]:
    """List the pages in an index's lists, which the site uses as its table of contents."""
    text = to_site(index.read_text(encoding="utf-8"), index)
    return re.findall(r"^- \[[^\]]*\]\(([\w/-]+\.md)\)", text, flags=re.MULTILINE)


def lists_in_paragraphs(page: Path) -> list[int]:
    """Return the number of each line that continues a paragraph but is taken for a list item by Markdown."""
    tokens = _parsed(page)
    ends = {before.map[1] for before in tokens if before.type == "paragraph_open" and before.map}
    return [
        token.map[0] + 1
        for token in tokens
        if token.type in {"bullet_list_open", "ordered_list_open"} and not token.level and token.map
        if token.map[0] in ends
    ]


def open_blocks(page: Path) -> list[int]:
    """Return the line of each code block that lacks its end: the beginning of the next one stands in it."""
    return [block.line for block in blocks(page) if re.search(r"^ *```\w", block.code, flags=re.MULTILINE)]


def doubled_lines(page: Path) -> list[int]:
    """Return the number of each line of text that repeats the line before it, as a cut leaves them."""
    inside = {line for block in blocks(page) for line in range(block.line, block.line + block.code.count("\n") + 2)}
    lines = page.read_text(encoding="utf-8").splitlines()
    return [at for at, (last, line) in enumerate(pairwise(["", *lines]), 1) if line == last != "" and at not in inside]


def long_sentences(page: Path, most_words: int) -> list[str]:
    """Return how each sentence begins that has more words, in paragraphs and lists.

    A colon ends a sentence, too, and what stands in parentheses does not count.
    """
    parts = [
        "".join(child.content if child.type in {"text", "code_inline"} else " " for child in token.children or ())
        for before, token in pairwise(_parsed(page))
        if before.type == "paragraph_open"
    ]
    inner = r"\([^()]*\)"
    bare = [re.sub(inner, "", re.sub(inner, "", part)) for part in parts]
    sentences = [sentence for part in bare for sentence in re.split(r"(?<=[.?!:])\s+", part)]
    return [f"{sentence[:60]}..." for sentence in sentences if len(sentence.split()) > most_words]


@cache
def _parsed(page: Path) -> tuple[Token, ...]:
    return tuple(MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")))


def _inline(page: Path) -> Iterator[Token]:
    for token in _parsed(page):
        yield from token.children or ()


class Block(NamedTuple):
    """A code block of a page.

    Attributes:
        line: First line, from 1.
        language: First word after its fence; empty if there is none.
        mark: Second word: why it is not run.
    """

    page: Path
    line: int
    language: str
    mark: str
    code: str


def blocks(page: Path) -> list[Block]:
    """List the code blocks of a page, in order."""
    found = []
    for token in _parsed(page):
        if token.type in {"fence", "code_block"} and token.map:
            language, mark = (*token.info.split(), "", "")[:2]
            found.append(Block(page, token.map[0] + 1, language, mark, token.content))
    return found
