"""Library: collections, search, passages, and documents added by users."""
