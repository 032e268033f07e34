"""The static engine: stored tables, evaluated by Spark, or in this process without it.

The trip of the data: `sources` reads files and databases, `changing` writes them, `tables` keeps
the versions that were read, `lowering` and `spark` evaluate plans, or `evaluation` without Spark,
`refreshing` computes views at times of day, and `service` does all of it on the broker.
"""
