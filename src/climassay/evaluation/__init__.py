"""The evaluation room."""
