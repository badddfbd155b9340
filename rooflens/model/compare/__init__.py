"""Set two recordings of a program side by side, and many in a row."""
