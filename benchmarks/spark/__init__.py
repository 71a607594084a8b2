"""Millstream on Spark compared with Spark's own operators, and the cost of a batch on Spark."""
