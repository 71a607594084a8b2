"""Load shedding: which plan to drop from, and how much from each of its inputs (A §4 and §5)."""
