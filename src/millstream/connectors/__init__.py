"""Sources, tables of other systems and sinks: what they promise, their names, and each of them."""
