"""One run for all attacks of a process."""

import pytest

from tests.attack.arena import Arena


@pytest.fixture(scope="session")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Arena:
    return Arena(tmp_path_factory.mktemp("arena"))
