"""What everything else speaks of: errors, names, types, values, time, records. It knows no SQL and no
plans."""
