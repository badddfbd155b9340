"""Draw the way of a ladder through the plane."""
