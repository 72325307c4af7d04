"""Run the scripted model server as a process: `python -m devstack.scripted_model --port N`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys

from devstack.scripted_model.server import ScriptedModel


def _refusal(argument: str) -> tuple[str, int]:
    feature, _, status = argument.partition("=")
    return feature, int(status or 400)


def _parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="devstack.scripted_model", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="loopback port; 0 takes a free one")
    parser.add_argument(
        "--refuse",
        type=_refusal,
        action="append",
        default=[],
        metavar="FEATURE[=STATUS]",
        help="answer requests that use json_schema, json_object or tools with this HTTP status",
    )
    return parser.parse_args(arguments)


async def _serve(port: int, refuses: dict[str, int]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with ScriptedModel(port=port, refuses=refuses, record=False) as model:
        print(f"scripted model: {model.base_url}", flush=True)
        await stop.wait()


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    options = _parse()
    try:
        asyncio.run(_serve(options.port, dict(options.refuse)))
    except (OSError, OverflowError) as error:
        print(f"scripted model: cannot listen on port {options.port}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
