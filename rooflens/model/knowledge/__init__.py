"""What each verdict, finding, flag and stall reason means: one TOML file an item, read by cards, `about`, MCP and docs.

Every text may be wrapped at will: runs of white space count as one space. Its keys are the attributes of `Item`.
"""
