"""Parts of the operator benchmark: one module per family of operators."""
