"""What fails a run of CI beyond comparing: recording anew to confirm, and the plugin of pytest."""
