"""What is known of plans, each fact an analysis of its own."""
