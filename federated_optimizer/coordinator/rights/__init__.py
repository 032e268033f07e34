"""Rights of principals: grants, makers, roles of statements, quotas. No IO."""
