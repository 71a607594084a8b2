"""Tables of other systems."""
