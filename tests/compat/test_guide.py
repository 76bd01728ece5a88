"""What is run of Stable-Baselines3's documentation, and that the document says what came of it."""

import json

from tests.compat.guide import BEGIN, DOCUMENT, END, RESULTS, Block, adapted, blocks, table

PAGE = """
# Title
```bash
python SAC
```
## Part
```python
from stable_baselines3 import HerReplayBuffer, SAC
from stable_baselines3.sac.policies import MlpPolicy
model = SAC(MlpPolicy, "Pendulum-v1")
```
```python
print("no algorithm")
```
```python
import stable_baselines3 as sb3
sb3.PPO("MlpPolicy", "CartPole-v1").learn(7)
```
"""


def test_blocks_are_found_by_their_heading_and_number() -> None:
    found = list(blocks({"page": PAGE}))
    assert [(block.heading, block.number, block.stand_in) for block in found] == [("Part", 2, ""), ("Part", 4, "DQN")]


def test_only_the_imports_of_algorithms_and_policies_are_changed() -> None:
    first, second = (adapted(block) for block in blocks({"page": PAGE}))
    assert first.splitlines() == [
        "from sunrise import SAC; from stable_baselines3 import HerReplayBuffer",
        "from sunrise.agents.policies import MlpPolicy",
        'model = SAC(MlpPolicy, "Pendulum-v1")',
    ]
    assert second.splitlines() == ["import sunrise as sb3", 'sb3.DQN("MlpPolicy", "CartPole-v1").learn(7)']
    assert Block("", "", 1, "DDPG").stand_in == "TD3"


def test_the_document_has_the_table_of_the_last_run_in_which_nothing_failed_that_is_ours() -> None:
    rows = json.loads(RESULTS.read_text())
    written = DOCUMENT.read_text().partition(BEGIN)[2].partition(END)[0]
    assert written.strip() == table(rows)
    assert "error" not in {row["outcome"] for row in rows if not row["stand_in"]}
