"""Rules that help for some streams and hurt for others: each returns equivalent plans of a node."""
