"""Millstream on Spark beside Spark's own operators, and what a batch on Spark costs."""
