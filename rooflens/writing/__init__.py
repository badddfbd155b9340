"""Files that are written: where, in which format, and what is in them."""
