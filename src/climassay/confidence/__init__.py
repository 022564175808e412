"""Expert confidence in IPCC reports: extract, group, track, tag (Maiya 2024, section 4.3; ClimateX)."""
