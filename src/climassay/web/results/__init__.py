"""Everything that was computed: runs, their tables and figures, questions one by one, comparisons, usage."""
