"""Every command and every block of Python that the documents show is run, shortened by flags alone."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sunrise
from sunrise.agents import AGENTS, Agent
from sunrise.cli import main

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")})
RUN = "runs/hopper1"
"""The run that documents speak of; README's is made by its own first command."""
SMALL = {"total-timesteps": "60", "ensemble-size": "2", "batch-size": "4", "eval-freq": "0", "save-freq": "0"}
SMALL |= {"learning-starts": "50", "buffer-size": "200", "net-arch": "8"}
PICTURES = {"render-size": "32", "filters": "2", "conv-layers": "2", "feature-dim": "4"}
OF_ALGORITHM = {
    "rainbow": {"n-step": "3", "n-atoms": "5"},
    "rad": PICTURES | {"crop-size": "28"},
    "curl": PICTURES | {"crop-size": "28"},
    "drq": PICTURES,
    "random": {"learning-starts": "50"},
}
GRID, SEARCH = (
    re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text(), re.DOTALL)[0]
    for page in ("cluster", "tune")
)
"""The files of a sweep and of a tuning that documents speak of."""


def blocks(document: Path) -> Iterator[tuple[str, str]]:
    """The language and the text of each fenced block."""
    yield from re.findall(r"^```(\w*)\n(.*?)^```", document.read_text(), re.DOTALL | re.MULTILINE)


def commands(document: Path) -> list[list[str]]:
    """Every `sunrise ...` of a document, as words."""
    found = []
    for language, text in blocks(document):
        if language in ("", "sh", "bash", "console"):
            lines = text.replace("\\\n", " ").splitlines()
            found += [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("sunrise ")]
    return found


def flags(words: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The words before the flags, and the flags with what follows each."""
    start: list[str] = []
    found: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            found[word[2:]] = []
        elif found:
            found[list(found)[-1]].append(word)
        else:
            start.append(word)
    return start, found


def shortened(words: list[str]) -> list[str]:
    """The same command with flags that make it quick."""
    start, given = flags(words)
    extra: dict[str, Any] = {}
    if start[0] == "train":
        given.pop("total-env-steps", None)
        extra = SMALL | OF_ALGORITHM.get(start[1], {})
    elif start[0] == "resume" and "total-timesteps" in given:
        extra = {"total-timesteps": "70"}
    elif start[0] == "collect" and "timesteps" in given:
        extra = {"timesteps": "40"}
    elif start[0] in ("evaluate", "record", "collect"):
        extra = {"episodes": "1"}
    elif start[0] in ("reproduce", "sweep", "tune") and "watch" not in given:
        extra = {"dry-run": None}
    elif start[0] == "watch":  # it would never end
        extra = {"help": None}
    elif start[0] == "bench":
        extra = {"members": "1", "repeats": "2"}
    given |= {name: [] if value is None else [value] for name, value in extra.items()}
    return [*start, *(word for name, values in given.items() for word in (f"--{name}", *values))]


WITH_COMMANDS = [document for document in DOCUMENTS if commands(document)]
WITH_PYTHON = [document for document in DOCUMENTS if any(language == "python" for language, _ in blocks(document))]


@pytest.mark.slow
@pytest.mark.parametrize("document", WITH_COMMANDS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_of_a_document_works(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")  # committed results are reported
    (tmp_path / "grid.yaml").write_text(GRID)
    (tmp_path / "search.yaml").write_text(SEARCH)
    (tmp_path / "out" / "runs").mkdir(parents=True)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    found = commands(document)
    if any(RUN in words for words in found) and not any(words[0] == "train" and RUN in words for words in found):
        main(shortened(["train", "sac", "--env-id", "Hopper-v5", "--run-dir", RUN]))
    for words in found:
        code: Any = 0
        try:
            main(shortened(words))
        except SystemExit as done:  # a sentence on stderr, or a usage
            code = done.code
        assert code in (0, None), (words, capsys.readouterr().err)


@pytest.mark.slow
@pytest.mark.parametrize("document", WITH_PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_block_of_python_of_a_document_runs(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one process, block after block, with small networks and short trainings."""
    monkeypatch.chdir(tmp_path)
    small = {name.replace("-", "_"): int(value) for name, value in SMALL.items() if name != "net-arch"}
    del small["total_timesteps"]
    for name, cls in AGENTS.items():
        monkeypatch.setattr(sunrise, cls.__name__, shorter(cls, name, small))
    names: dict[str, Any] = {"__name__": "__main__"}
    for language, text in blocks(document):
        if language == "python":
            exec(compile(text, str(document), "exec"), names)  # our own documents


def shorter(cls: type[Agent], name: str, small: dict[str, Any]) -> type[Agent]:
    """A class of agents that are small and learn for a moment only."""

    class Short(cls, algo=name):  # type: ignore[misc, valid-type, call-arg]
        def __init__(self, *arguments: Any, **settings: Any) -> None:
            arch = {} if "net_arch" in settings else {"policy_kwargs": {"net_arch": [8]}}
            super().__init__(*arguments, **(arch | small | settings))

        def learn(self, total_timesteps: int, *rest: Any, **more: Any) -> Any:
            return super().learn(min(total_timesteps, 60), *rest, **more)

    return Short


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_document_leads_to_a_file_and_to_a_heading_of_it(document: Path) -> None:
    links = [link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", prose(document)) if "://" not in link]
    missing = [file for file, _, _ in links if file and not (document.parent / file).exists()]
    assert not missing
    inside = [(document.parent / file if file else document, heading) for file, _, heading in links if heading]
    assert not [(file, heading) for file, heading in inside if heading not in anchors(file)]


def prose(document: Path) -> str:
    """A document without its blocks of code."""
    return re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """What a link may name of a page: its headings, as hosts of Markdown spell them."""
    headings = re.findall(r"^#+ (.+)$", prose(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_documents_are_found() -> None:
    assert ROOT / "README.md" in WITH_COMMANDS
    assert ROOT / "README.md" in WITH_PYTHON
    assert ["evaluate", "runs/hopper1", "--episodes", "10"] in commands(ROOT / "README.md")
    assert "--dry-run" in shortened(["reproduce", "table1"])
