"""Pages about single words: what a verdict, finding, flag, stall reason or counter means, and what to do about it."""
