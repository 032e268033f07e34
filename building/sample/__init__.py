"""The sample building, and link traces as buildings."""
