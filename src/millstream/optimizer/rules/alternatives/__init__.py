"""Rules that are better for some streams and worse for others: each gives equal plans of a node."""
