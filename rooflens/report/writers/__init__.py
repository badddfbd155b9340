"""Write a document: on a terminal, as Markdown, as HTML."""
