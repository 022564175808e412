"""The statistics room."""
