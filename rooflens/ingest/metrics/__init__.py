"""Metrics and their instances (by instruction, sample or opcode), independent of the reader that decoded them."""
