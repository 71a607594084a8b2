"""What everything else speaks of: errors, names, types, values, time, records; no SQL, no plans."""
