"""The report in a few hundred bytes a kernel, and all of one kernel: Markdown for a model or a chat message."""

from rooflens.report.text.digest.explained import explain
from rooflens.report.text.digest.whole import DEFAULT_TOKENS, LEAST_TOKENS, digest, tokens_of

__all__ = ["DEFAULT_TOKENS", "LEAST_TOKENS", "digest", "explain", "tokens_of"]
