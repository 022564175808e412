"""One file per version, each after the one before."""
