"""What there is to say of one kernel: one document, which a terminal, Markdown, a page, a notebook and MCP write."""
