"""Expert confidence in IPCC reports: extract statements, group them by topic, compare trends, and tag new statements.

The methods are those of Maiya (2024, section 4.3) and ClimateX.
"""
