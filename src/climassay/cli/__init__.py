"""The command line: one file for a group of commands, which parse, call ``api`` and show the result."""
