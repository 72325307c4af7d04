"""llmbot: a Matrix bot that answers with any OpenAI-compatible model and remembers people well."""

from .bot import LLMBot

__all__ = ["LLMBot"]
