"""What operators keep: rows by slot, keys as codes, strings once, versions."""
