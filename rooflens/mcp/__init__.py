"""A server of the Model Context Protocol, with which a model reads reports."""
