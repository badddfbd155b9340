"""Forecast operations by formula, and hold measurements against the forecast."""
