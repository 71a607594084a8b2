"""Facts about plans, one analysis per module."""
