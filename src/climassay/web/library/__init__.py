"""The library: collections, search, passages, and the documents that people add."""
