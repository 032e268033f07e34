"""Readers of stored tables: CSV, Parquet, JSON and SQL databases, validated to declared types."""
