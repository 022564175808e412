"""Readers of documents, by kind of file."""
