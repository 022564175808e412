"""Results: runs, their tables and figures, individual questions, comparisons, and usage."""
