"""The commands, a file each: they take flags and files, make one call into the package, and print the answer."""
