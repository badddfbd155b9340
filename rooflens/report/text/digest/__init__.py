"""Digests in Markdown, for a model or a chat message: a report in a few hundred bytes per kernel, or a whole kernel."""

from rooflens.report.text.digest.explained import explain, explain_document, hot_table
from rooflens.report.text.digest.kernel import file_of, in_report, short_name
from rooflens.report.text.digest.whole import digest, tokens_of
from rooflens.report.token_budget import BYTES_PER_TOKEN, DEFAULT_TOKENS, LEAST_TOKENS

__all__ = [
    "BYTES_PER_TOKEN",
    "DEFAULT_TOKENS",
    "LEAST_TOKENS",
    "digest",
    "explain",
    "explain_document",
    "file_of",
    "hot_table",
    "in_report",
    "short_name",
    "tokens_of",
]
