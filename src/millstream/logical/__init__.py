"""The algebra: plans and expressions as values, their meaning (`reference.py`), functions and
aggregates, and the catalog."""
