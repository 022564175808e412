"""One file a version, each after the one before."""
