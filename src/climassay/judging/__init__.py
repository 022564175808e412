"""Judging: pairwise preferences of a language model, probes on contrast pairs, sorting and insertion."""
