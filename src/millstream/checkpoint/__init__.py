"""Checkpoints: the state and the progress of a query, in a folder that survives a crash."""
