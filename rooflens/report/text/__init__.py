"""Write results as text: terminal, JSON, CSV, Markdown."""
