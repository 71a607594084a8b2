"""Turns data of any kind into typed and checked rows."""
