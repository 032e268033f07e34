"""The pipeline: segments of the lander become rows of the lake, each once.

`pack_rows.py` makes rows of packs, without Spark.
"""
