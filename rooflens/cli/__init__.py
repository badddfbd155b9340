"""The command line: what meets the user, and the one place where errors are shown."""
