"""Positions and verdicts -> things people read: terminal table, JSON, HTML page."""
