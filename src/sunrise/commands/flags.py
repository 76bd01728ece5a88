"""Flags that several commands have: each with one name, one kind and one text."""

from pathlib import Path
from typing import Annotated

import tyro

from sunrise.config.tasks import RendererChoice

Run = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(help="The run's folder.")]
EpisodeSeed = Annotated[int | None, tyro.conf.arg(help="Seed of the episodes; default: the run's own.")]
TrustEnv = Annotated[
    bool,
    tyro.conf.arg(help="Let the run's environment import the module it names (an id like mymodule:MyEnv-v0)."),
]
OwnAlgorithm = Annotated[
    str | None,
    tyro.conf.arg(
        help="The run's algorithm, where it is not one of ours: what was given to `train`, like mypkg.mymod:MINE. It "
        "is imported, which runs its code."
    ),
]
RunRenderer = Annotated[
    RendererChoice | None,
    tyro.conf.arg(
        help="Who draws what an agent of pixels sees; default: who drew it in training. Another one draws other "
        "pictures."
    ),
]
