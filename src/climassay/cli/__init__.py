"""The ``climassay`` command: one file for one command group; thin: parse, call, print.

Modules here import only the standard library, typer and ``climassay.errors`` at the top; everything heavier is imported
inside the commands, so that ``climassay --help`` answers at once.
"""
