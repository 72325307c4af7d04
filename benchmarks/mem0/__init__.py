"""The same exchanges through llmbot and through mem0."""
