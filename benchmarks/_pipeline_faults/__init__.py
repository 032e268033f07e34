"""Parts of `benchmarks.pipeline_faults`."""
