"""Which Pythons, and which versions of what maubot brings, llmbot runs on: tried, not guessed."""
