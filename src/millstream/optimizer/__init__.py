"""The choice of plan: rules, join orders, alternatives by cost, and physical operators."""
