"""The parts of joins: sweep areas, the inputs and steps of joins of many, portions."""
