"""Our environments, made known to Gymnasium as soon as it is there: importing `sunrise` alone does not import it."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

from sunrise.config.tasks import DMC_SUITE, GYM_TASKS


def register() -> None:
    """`sunrise/<name>-v0` and `dmc/<domain>-<task>`, by name; registering twice changes nothing."""
    import gymnasium as gym

    for name in GYM_TASKS:
        if (env_id := f"sunrise/{name}-v0") not in gym.registry:
            gym.register(env_id, "sunrise.envs.paper:PaperEnv", max_episode_steps=1000, kwargs={"task": name})
    for domain, tasks in DMC_SUITE.items():
        for task in tasks:
            if (env_id := f"dmc/{domain}-{task}") not in gym.registry:
                gym.register(env_id, "sunrise.envs.dmc:DMCEnv", kwargs={"domain": domain, "task": task})


class AfterGymnasium(importlib.abc.MetaPathFinder):
    """Waits for the import of Gymnasium, and registers our environments at its end."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Gymnasium's own way to be imported, with our part after it; nothing of any other module."""
        if fullname != "gymnasium" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        loader, run = spec.loader, spec.loader.exec_module

        def then_register(module: ModuleType) -> None:
            loader.exec_module = run  # type: ignore[method-assign]
            run(module)
            register()

        loader.exec_module = then_register  # type: ignore[method-assign]
        return spec


def register_when_gymnasium_is_there() -> None:
    """Now if it is imported already, else when it will be."""
    if "gymnasium" in sys.modules:
        register()
    elif not any(isinstance(finder, AfterGymnasium) for finder in sys.meta_path):
        sys.meta_path.insert(0, AfterGymnasium())
