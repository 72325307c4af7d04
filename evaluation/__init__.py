"""How much of what the bot remembers is true: `make eval`, and docs/choosing-a-threshold.md."""
