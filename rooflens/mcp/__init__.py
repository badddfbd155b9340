"""A server of the Model Context Protocol, through which a language model reads reports."""
