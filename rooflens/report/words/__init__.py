"""What records are called and said to be, in words: for tables, pages, Markdown and digests alike."""
