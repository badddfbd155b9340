"""Draw the page of a forecast."""
