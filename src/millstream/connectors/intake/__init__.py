"""Data of any kind as typed and checked rows."""
