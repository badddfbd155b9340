"""Draw the card of a kernel, part by part."""
