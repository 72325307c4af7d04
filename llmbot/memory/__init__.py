"""The two-stage memory: candidates that become memories when they are mentioned again."""
