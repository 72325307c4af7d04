"""The least that a maubot plugin can do with a message: say it again."""

from maubot import MessageEvent, Plugin
from maubot.handlers import command


class EchoBot(Plugin):
    """Answers `!echo`."""

    @command.new("echo")
    @command.argument("words", pass_raw=True, required=True)
    async def echo(self, event: MessageEvent, words: str) -> None:
        """Reply with what was said."""
        await event.reply(words)
