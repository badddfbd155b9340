"""How long a digest is: in a module of its own, for commands name these sizes before they need a digest."""

BYTES_PER_TOKEN = 3
"""What a token is taken for: models differ, and text full of numbers and names takes more tokens than prose does."""

DEFAULT_TOKENS = 1500
LEAST_TOKENS = 200
