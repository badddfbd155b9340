"""What `import rooflens` offers: reports as Python objects, and the commands as functions."""
