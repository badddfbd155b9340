"""Draw the page of many runs."""
