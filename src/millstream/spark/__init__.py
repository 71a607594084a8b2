"""The Spark engine: the same operators as the local engine, in the tasks of Spark jobs."""
