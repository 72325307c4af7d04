"""`make demo`: a conversation in which a fact becomes a candidate and then a memory.

`ONCE=1` (or no terminal) stops after it, with exit status 0 only if the promotion happened.
`MODEL=provider/name` asks a real provider instead of the scripted model.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Any

import asyncpg
from mautrix.errors import MatrixError
from ruamel.yaml import YAML

from devstack.build import ROOT, build
from devstack.demo_chat import Conversation
from devstack.demo_prompt import CHANGE_SECONDS, chat
from devstack.demo_view import CANDIDATES, MEMORIES, heading, say
from devstack.maubot_server import ADMIN
from devstack.process import StackError, run_until_signal
from devstack.stack import Stack
from devstack.synapse import SERVER_NAME

SCRIPTED = "scripted/llmbot-demo"


async def play(conversation: Conversation) -> None:
    """Play the conversation in which a fact is promoted.

    Raises:
        StackError: The promotion did not happen.
    """
    heading(
        "1. Ada mentions something about herself",
        "The bot answers. Then, in the background, it looks for facts in what she said. What is"
        " mentioned once is only a candidate: kept aside, not used in answers.",
    )
    await conversation.play("!ask I work as a beekeeper. What should I plant for my bees?")
    first = await conversation.wait_for(
        lambda tables: bool(tables.candidates), "a candidate after the first mention"
    )
    say(f"\n{first}")

    heading(
        "2. Small talk",
        "What is true only today is best not remembered. It becomes a candidate at most; nobody"
        " mentions it again, so it never becomes a memory and is dropped after some days.",
    )
    await conversation.play("!ask I am tired today. Any idea for a quick dinner?")
    second = await conversation.tables_once(lambda tables: tables != first, CHANGE_SECONDS)
    say(f"\n{second}")

    heading(
        "3. Ada mentions the first fact again, in other words",
        "The same fact for the second time: it leaves the candidates and becomes a memory, under"
        " the wording first recorded. From now on the bot knows it whenever she talks to it.",
    )
    await conversation.play("!ask My job is beekeeper, so I am up early. When do bees wake up?")
    facts = first.candidate_facts
    third = await conversation.wait_for(
        lambda tables: bool((tables.memory_facts & facts) - tables.candidate_facts),
        f"one of {sorted(facts)} to move from {CANDIDATES} to {MEMORIES}",
    )
    say(f"\n{third}")

    heading(
        "4. Ada looks at what the bot remembers of her",
        "Everybody sees their own memories, and only theirs, and can delete them.",
    )
    listing = await conversation.play("!memories")
    promoted = third.memory_facts & facts
    if not all(fact in listing.body for fact in promoted):
        raise StackError(f"expected !memories to list {sorted(promoted)}, got {listing.body!r}")
    say("\nThe fact was promoted from candidate to memory.")


async def play_other_ways(conversation: Conversation) -> None:
    """Play the other ways to talk: a scene, a picture and a story.

    Raises:
        StackError: One of them did not end as it should.
    """
    heading(
        "5. A scene that the room plays together",
        "While it is on, questions are answered inside the scene. What a character says is no fact"
        " about the person; what Ada says aside, out of character, is.",
    )
    before = await conversation.tables()
    await conversation.play("!verse on A lighthouse on a stormy night")
    await conversation.play('!ask "I am the queen of the sea!" I shout. (OOC: I live in Hamburg.)')
    after = await conversation.wait_for(
        lambda tables: tables.candidate_facts != before.candidate_facts,
        "a candidate from what was said aside",
    )
    say(f"\n{after}\n")
    await conversation.play("!verse off")

    heading("6. A picture", "Neither pictures nor stories are ever searched for facts.")
    drawn = await conversation.play("!draw A lighthouse on a stormy night")
    if drawn.content.get("msgtype") != "m.image":
        raise StackError(f"expected a picture, got {drawn.body!r}")

    heading(
        "7. A short illustrated story",
        "Texts and pictures come one after another in a thread; its first line, which is edited,"
        " tells how far the story is.",
    )
    status = await conversation.play("!story a lighthouse keeper and a whale")
    await conversation.until_told(status)


def chosen_model() -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return what `MODEL` asks for: changes to the config, and variables for maubot.

    Raises:
        StackError: The provider is unknown, or its key is not set.
    """
    model = os.environ.get("MODEL", "")
    if not model:
        return {"assistantModel": SCRIPTED, "imageModel": SCRIPTED}, {}
    provider, _, name = model.partition("/")
    known = YAML(typ="safe").load((ROOT / "base-config.yaml").read_text())["providers"]
    if not name or provider not in known:
        raise StackError(f"MODEL must be provider/name with one of {', '.join(known)}: {model!r}")
    variable = known[provider].get("apiKeyEnv") or ""
    if variable and not os.environ.get(variable):
        raise StackError(f"MODEL={model} needs the API key in the variable {variable}")
    return {"assistantModel": model}, os.environ


def introduce(conversation: Conversation) -> None:
    """Print how to go on: the prompt, the addresses and the log-ins."""
    stack, ada = conversation.stack, conversation.speaker
    heading(
        "Your turn",
        "Type to talk to the bot as Ada. A line that starts with ! is sent as it is; any other is"
        " sent as a question (!ask). /help lists what else you can do: change settings, let days"
        " pass, be somebody else. docs/tour.md shows each rule of the memory with lines to type."
        " /quit ends the demo.",
    )
    say(f"  maubot's web UI  {stack.maubot.url}/_matrix/maubot/")
    say(f"                   user {ADMIN}, password {stack.maubot.admin_password}")
    say(f"  homeserver       {stack.synapse.url} (any Matrix client on this machine)")
    say(f"                   user {ada.user_id}, password {ada.account.password}")
    say(f"  logs             {stack.folder / 'logs'}")


async def open_room(stack: Stack, config: dict[str, Any]) -> Conversation:
    """Set the bot up as an admin would, and bring it and Ada into a room."""
    if stack.model:
        config["providers"] = {"scripted": {"baseUrl": stack.model.url, "apiKeyEnv": ""}}
    mbp = await asyncio.to_thread(build)
    bot = await stack.setup_bot(mbp, config)
    say(f"  {mbp.name} is uploaded and runs as {bot.user_id}")
    ada = await stack.member("ada")
    # The bot as a moderator, so that Ada can set the room's scene through it.
    levels = {"users": {ada.user_id: 100, bot.user_id: 50}}
    room_id = await ada.create_room(
        bot.user_id, name="llmbot demo", version="11", power_levels=levels
    )
    await ada.wait_for_member(room_id, bot.user_id)
    say(f"  @ada:{SERVER_NAME} and the bot are in a room; model: {config['assistantModel']}")
    return Conversation(stack, ada, bot, room_id)


async def perform(stack: Stack, config: dict[str, Any], *, once: bool) -> None:
    """Set the bot up, play the conversation and, unless `once`, hand over to the terminal."""
    conversation = await open_room(stack, config)
    await play(conversation)
    if config.get("imageModel"):
        await play_other_ways(conversation)
    if not once:
        introduce(conversation)
        await chat(conversation)


async def demo(*, once: bool) -> None:
    """Run the whole demo.

    Raises:
        StackError: It could not be run, or the promotion did not happen.
    """
    config, variables = chosen_model()
    scripted = config["assistantModel"] == SCRIPTED
    async with Stack(scripted_model=scripted, variables=variables, progress=say) as stack:
        try:
            await stack.watched(perform(stack, config, once=once))
        finally:
            say("\nstopping everything ...")


def main() -> int:
    """Run the demo; return the exit status for the shell."""
    once = os.environ.get("ONCE", "") not in {"", "0"} or not (sys.stdin and sys.stdin.isatty())
    try:
        run_until_signal(demo(once=once))
    except (StackError, MatrixError, asyncpg.exceptions.PostgresError, OSError) as error:
        print(f"llmbot demo: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130 if once else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
