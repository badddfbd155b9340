"""Names and statements about records in words, for tables, pages, Markdown and digests alike."""
