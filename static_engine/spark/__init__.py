"""Spark: Java, its JVM, the session, and the evaluation of plans by it."""
