"""The numbers: pure functions from resolved counters to positions and verdicts."""
