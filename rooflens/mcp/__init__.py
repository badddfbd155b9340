"""A Model Context Protocol server through which a language model reads reports."""
