"""Checking claims in the browser: ask, watch the debate, read the verdict, say what one thinks of it; and texts."""
