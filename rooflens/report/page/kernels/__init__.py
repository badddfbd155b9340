"""The one list of the page: a row for each kernel, its columns, and the launches below it."""
