"""Which plan runs: rules, join orders, alternatives by cost, and the choice of operators."""
