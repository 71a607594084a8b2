"""Orders of binary joins: the trees, their costs, and the searches for a cheap one."""
