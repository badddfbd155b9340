"""Pages about single words: what a verdict, a finding or a flag means, and what to do about it."""
