"""Pages about single words: what a verdict, a finding, a flag or a stall reason means, and what to do about it."""
