"""Models whose weights are on this machine, on torch and transformers.

Importing this package imports nothing heavy; :class:`climassay.models.local.model.LocalModel` does.
"""
