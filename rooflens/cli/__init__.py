"""The command line: everything the user meets, and the only place where errors are shown."""
