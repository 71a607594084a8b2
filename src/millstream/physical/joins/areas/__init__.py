"""Sweep areas: where joins keep the rows of an input until they expire."""
