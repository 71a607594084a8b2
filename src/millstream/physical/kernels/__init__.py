"""Loops over arrays, compiled by Numba."""
