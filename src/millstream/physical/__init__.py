"""Operators over batches of columns, and what they are made of."""
