"""Name every quantity once: under which metrics it is stored, and how it is worked out."""
