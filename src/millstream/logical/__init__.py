"""The algebra: plans and expressions as values, what they mean (`reference.py`), functions and
aggregates, and the catalog that holds plans."""
