"""Forecast operations by formula, and compare measurements with the forecast."""
