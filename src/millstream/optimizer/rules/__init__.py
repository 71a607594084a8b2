"""The rules of the optimizer, one per file; `optimize.py` has their order."""
