"""Commands that models use most: one kernel in words, the server of the Model Context Protocol, the skill."""
