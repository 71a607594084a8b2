"""Load shedding: the plan to shed from, and how much of each of its inputs (A §4 and §5)."""
