"""Millstream and its peers on the same work.

What a first run asked of the system is kept for the runs that count. Polars keeps its memory; the
pool of Arrow would give it back between runs, and to ask anew takes longer than to compute.
"""

import os

os.environ.setdefault("MIMALLOC_PURGE_DELAY", "-1")  # read when Arrow is imported, which is later
