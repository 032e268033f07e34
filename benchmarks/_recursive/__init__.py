"""Parts of the recursion benchmarks: workloads, the product under test, peers, sessions, charts."""
