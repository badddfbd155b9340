"""Read thousands of kernels at once, in columns, straight into rows of the store."""
