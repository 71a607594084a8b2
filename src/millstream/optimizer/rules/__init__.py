"""The rules of the optimizer, each in a file of its own; `optimize.py` has their order."""
