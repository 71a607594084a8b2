"""The parts of joins: sweep areas, the inputs and steps of multi-way joins, portions."""
