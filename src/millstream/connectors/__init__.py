"""Sources, external tables and sinks: their contracts, their registry and their implementations."""
