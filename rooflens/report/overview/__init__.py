"""What there is to say of several kernels: one document, which every face writes or takes its parts of."""
