"""Revisions of the tables of a records database, of this room and of those above it, for Alembic.

Whoever changes a table raises ``SCHEMA_VERSION`` (:mod:`climassay.records.tables`) and adds a file to ``versions`` that
changes the tables of the version before. Tables of higher rooms are made when they are first needed and may be missing.
"""
