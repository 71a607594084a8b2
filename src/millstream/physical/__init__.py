"""Physical operators over columnar batches, and their building blocks."""
