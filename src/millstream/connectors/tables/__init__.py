"""Tables read from other systems."""
