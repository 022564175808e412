"""The primer room."""
