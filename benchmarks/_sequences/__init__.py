"""Random sequences of queries that come and go over one network of shared computations."""
