"""`sunrise watch`: the report's page on this machine while runs go on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from sunrise.errors import SunriseError


@dataclass
class Flags:
    """Show the runs below a folder in a browser while they go on: curves, progress, time left, and what stopped."""

    folder: Annotated[Path, tyro.conf.Positional]
    """The folder that the runs are in; nothing outside of it is read."""
    port: int = 8000
    """0 takes any that is free."""
    host: str = "127.0.0.1"
    """Another address than this machine's own lets others look, without a password."""


def run(arguments: Sequence[str]) -> None:
    """Serve until Ctrl-C."""
    from sunrise.console import say
    from sunrise.report.live import Live
    from sunrise.report.page.report import live_content
    from sunrise.report.watch import Server

    flags = tyro.cli(Flags, args=arguments, prog="sunrise watch")
    if not flags.folder.is_dir():
        raise SunriseError(f"{flags.folder} is no folder.")
    if not 0 <= flags.port < 2**16:
        raise SunriseError(f"port is {flags.port}, but must be from 0 to 65535.")
    with Server(Live(flags.folder, live_content), flags.host, flags.port) as server:
        if not server.is_local:
            say(f"warning: whoever reaches {flags.host} sees the runs below {flags.folder}; there is no password.")
        say(f"The runs below {flags.folder}: {server.address} (Ctrl-C ends this)")
        try:
            server.serve_forever(poll_interval=0.25)
        except KeyboardInterrupt:
            say("Ended. The runs go on.")
