"""Parts of the benchmark of the pipeline."""
