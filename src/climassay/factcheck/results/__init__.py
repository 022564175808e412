"""Results of fact-checks: scores, analysis of runs, reports, pages and exports."""
