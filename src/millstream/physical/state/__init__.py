"""Building blocks of operator state: rows by slot, keys as codes, pooled strings, versions."""
