"""What `train` and `resume` have in common: train to the end, and say what to do next."""

from typing import TYPE_CHECKING

from sunrise.console import say

if TYPE_CHECKING:
    from sunrise.agents import Agent


def learn(model: "Agent", timesteps: int, run_dir: str) -> None:
    """Train on from where the model is, and say what to do next, however it ends."""
    own = f" --algorithm {model.algorithm.imported_from}" if model.algorithm.imported_from else ""
    try:
        model.learn(timesteps, log_interval=None, reset_num_timesteps=False)
    except KeyboardInterrupt:
        saved = max(model.session.saved_at, 0) if model.session else 0
        say(f"\nStopped at timestep {model.num_timesteps:,}; saved up to {saved:,} in {run_dir}.")
        say(f"Go on: sunrise resume {run_dir}{own}")
        say(f"Look at the agents: sunrise evaluate {run_dir}{own}")
        raise SystemExit(130) from None
    say(f"Finished. Next: sunrise evaluate {run_dir}{own}")
