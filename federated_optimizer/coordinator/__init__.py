"""The IO half of the optimizer: catalog, deployment, results, membership of one federation.

Local sessions import single modules of it, so nothing is imported here.
"""
