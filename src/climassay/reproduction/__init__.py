"""Reproduction of the papers behind climassay: their tables, with our rows next to the published rows.

Each paper has a module with its recipe and the function that reproduces its tables.
"""
