"""Annotation in the browser: experts label drafts, adjudicators settle conflicts, and admins train validators.

Manivannan et al. 2025 (ClimaQA), section 4.3 and appendix A.5. See docs/annotation.md.
"""
