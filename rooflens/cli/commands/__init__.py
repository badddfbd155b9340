"""The commands, one file each: flags, files and exit codes in, one call into the package, words out."""
