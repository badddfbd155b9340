"""Findings: why a kernel is slower than it could be, where, and what to do. Pure: without input or output."""
