"""Millstream and its peers on the same work.

Memory allocated in the first run is kept for the timed runs. Polars keeps its memory; Arrow's pool
would return it between runs, and allocating it again takes longer than the computation.
"""

import os

os.environ.setdefault("MIMALLOC_PURGE_DELAY", "-1")  # read when Arrow is imported, later
