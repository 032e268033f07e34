"""The half of the optimizer that talks to the world: catalog storage, deployment, results."""
