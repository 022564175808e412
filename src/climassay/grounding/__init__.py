"""The grounding room."""
