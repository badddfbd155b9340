"""Output files: where they go, in which format, and what they contain."""
