"""Cuts a statement into fragments for gateways, base sites and Spark, and runs them."""
