"""Incremental operators, one a file: changes of the inputs in, change of the output out."""
