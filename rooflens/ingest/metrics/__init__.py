"""What is stored of single instructions, samples and opcodes: metrics with instances, whoever read them."""
