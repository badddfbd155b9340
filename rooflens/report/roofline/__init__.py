"""Draw the hierarchical roofline in its plane."""
