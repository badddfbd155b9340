"""The tokens a digest may take. Commands name these limits in their help, so they load without the digest."""

BYTES_PER_TOKEN = 3
"""What a token is taken for: models differ, and text full of numbers and names takes more tokens than prose does."""

DEFAULT_TOKENS = 1500
LEAST_TOKENS = 200
