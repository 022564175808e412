"""What fact-checks amount to: scores, the analysis of a run, reports, pages and exports."""
