"""Load with kills and restarts in it, and what must hold all the same."""
