"""Draw the log-log plane: axes, roofs, points, and text that overlaps nothing."""
