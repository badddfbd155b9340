"""What `import rooflens` gives: reports as Python objects, with the verbs of the commands."""
