"""The Python API: sessions, queries, views, and the execution of statements."""
