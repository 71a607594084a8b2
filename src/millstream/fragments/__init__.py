"""Plans cut into fragments, whose operators run in shards, in this process or remotely."""
