"""Iceberg and Delta tables by path: folders whose metadata name the files of the rows."""
