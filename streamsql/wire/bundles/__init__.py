"""Facts that follow from bundles: prints of fragments, trimmed bundles, partitions, needed rows."""
