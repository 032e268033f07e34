"""Plans to Spark DataFrames, with StreamSQL's semantics exactly."""
