"""Proof of the judge's error rates: simulated timings of known truth, from fixed seeds. Not part of the package."""
