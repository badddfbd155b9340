"""Digests in Markdown, for a model or a chat message: a report in a few hundred bytes per kernel, or a whole kernel."""

from rooflens.report.text.digest.kernel import in_report
from rooflens.report.text.digest.whole import digest, tokens_of
from rooflens.report.token_budget import BYTES_PER_TOKEN, DEFAULT_TOKENS, LEAST_TOKENS

__all__ = [
    "BYTES_PER_TOKEN",
    "DEFAULT_TOKENS",
    "LEAST_TOKENS",
    "digest",
    "in_report",
    "tokens_of",
]
