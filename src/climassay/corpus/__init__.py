"""Read documents, split them into passages, keep them in collections, find them again."""
