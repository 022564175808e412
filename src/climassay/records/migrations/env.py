"""Runs revisions on the connection, and in the transaction, of whoever opens the database."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
