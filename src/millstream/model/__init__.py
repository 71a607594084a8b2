"""The vocabulary of all layers: errors, names, types, values, time, records. No SQL, no plans."""
