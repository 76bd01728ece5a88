"""`sunrise envs`: what can be trained on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro


@dataclass
class Flags:
    """List environments with their observations, actions and the extra they need."""

    pattern: Annotated[str, tyro.conf.Positional] = ""
    """Show only ids with a word that begins like this."""


def run(arguments: Sequence[str]) -> None:
    """Print the list."""
    from sunrise.envs.catalogue import print_catalogue

    print_catalogue(tyro.cli(Flags, args=arguments, prog="sunrise envs").pattern)
