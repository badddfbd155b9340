"""Draw the page of a report, part by part."""
