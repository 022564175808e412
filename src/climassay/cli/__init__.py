"""The command line: files of groups of commands, which parse, call ``api`` and show the result."""
