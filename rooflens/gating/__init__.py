"""Gates for CI beyond comparing: recording again to confirm a regression, and the pytest plugin."""
