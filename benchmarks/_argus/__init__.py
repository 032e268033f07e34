"""The protocol of a thesis on many continuous queries: its data, queries, network and claims."""
