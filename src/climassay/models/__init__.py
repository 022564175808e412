"""What a language model can do for us, and who provides it."""
