"""Who may do and read what: grants, makers, roles of statements, quotas. No IO."""
