"""The lake: Iceberg tables of what the federation has seen, and tables that people change.

`lake.py` opens it; `kept_readings.py` is the layout of a source's table, `kept_columns.py` which
of its columns a definition means, `lake_scan.py` what a query reads, `lake_commits.py` how files
become visible, once each; `readings_files.py` writes them. Nothing here needs Spark.
"""
