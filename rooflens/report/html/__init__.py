"""Put pages together: document, templates, themes and what is embedded."""
