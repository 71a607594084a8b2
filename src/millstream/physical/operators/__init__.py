"""The operators, one file each: plan node, meaning, state, cost."""
