"""Confidence intervals and statistical tests; the tests compare them with SciPy or statsmodels."""
