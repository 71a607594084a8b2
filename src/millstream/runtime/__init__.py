"""Queries that run in this process: graph, inputs, rounds, delivery, metrics."""
