"""The commands that look something up: in our tables, on this machine, or in the command line itself."""
