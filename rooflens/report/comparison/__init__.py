"""Draw the page of a comparison."""
