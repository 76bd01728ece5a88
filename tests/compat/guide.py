"""Stable-Baselines3's own documentation on our models: every Python block of its pages, with only the import changed.

`python tests/compat/guide.py PATH` takes a checkout of its repository, or a git directory of it, which is not part of
ours. Each block runs in a process and a folder of its own (`guide_block.py`); what came of it is written to
`guide.json` and, as a table, to docs/stable-baselines3.md. A block that ends in an error is run once more as it was
written, with Stable-Baselines3's own classes: what fails there too is not ours to mend.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
RESULTS, DOCUMENT = HERE / "guide.json", HERE.parents[1] / "docs" / "stable-baselines3.md"
OURS = ("SAC", "TD3", "DQN")
OTHERS = ("PPO", "A2C", "DDPG")
THEIRS = "stable_baselines3"
FINITE = re.compile(r"CartPole|LunarLander-|Pong|Breakout|MultiObs")
"""Environments in which there is a finite number of actions."""
ELSEWHERE = {"huggingface_sb3": "an account at Hugging Face's Hub"}
"""What a block may import that reaches for things which no test has."""
SECONDS, SIDE_BY_SIDE = 240, int(os.environ.get("JOBS", "2"))
BEGIN, END = "<!-- the table of tests/compat/guide.py -->", "<!-- its end -->"


class Block(NamedTuple):
    """A piece of Python on a page."""

    page: str
    heading: str
    number: int
    """Which of the page's blocks of code it is, from 1."""
    code: str

    @property
    def names(self) -> set[str]:
        """The algorithms it names."""
        return set(re.findall(rf"\b({'|'.join(OURS + OTHERS)})\b", self.code))

    @property
    def row(self) -> dict[str, Any]:
        """What the table says of it before it is run."""
        return {"page": self.page, "heading": self.heading, "block": self.number, "stand_in": self.stand_in}

    @property
    def stand_in(self) -> str:
        """Which of ours is put in the place of an algorithm that is not here; none where the block uses ours."""
        if self.names & {*OURS}:
            return ""
        if self.names & {"DDPG"}:
            return "TD3"
        return "DQN" if FINITE.search(self.code) else "SAC"


def blocks(pages: Mapping[str, str]) -> Iterator[Block]:
    """The blocks that use an algorithm of Stable-Baselines3, or leave to the reader to import one."""
    for page, text in pages.items():
        heading, number, fence = "", 0, ""
        lines: list[str] = []
        for line in text.splitlines():
            mark = re.match(r"\s*(`{3,})\s*(.*)", line)
            if not fence and mark:
                fence, language, lines = mark[1], mark[2].strip("{} "), []
            elif fence and mark and mark[1] == fence and not mark[2]:
                fence, number = "", number + 1
                block = Block(page, heading, number, "\n".join(lines))
                if language == "python" and block.names and "sbx" not in block.code:
                    yield block
            elif fence:
                lines.append(line)
            elif line.startswith("#"):
                heading = line.strip("# ")


def adapted(block: Block) -> str:
    """Its code with the imports of algorithms and of their policies from here, nothing else."""
    code = block.code
    if block.stand_in:
        code = re.sub(rf"\b({'|'.join(OTHERS)})\b", block.stand_in, code)
    lines = code.splitlines()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom) and node.end_lineno == node.lineno:
            lines[node.lineno - 1] = " " * node.col_offset + imported(node)
    return "\n".join(lines)


def imported(node: ast.Import | ast.ImportFrom) -> str:
    """An import with what we have from here."""
    if isinstance(node, ast.Import):
        return ast.unparse(node).replace(f"import {THEIRS} as", "import sunrise as")
    known: tuple[str, ...] = ()
    if node.module == THEIRS:
        known, here = OURS, "sunrise"
    elif re.fullmatch(rf"{THEIRS}\.(sac|td3|dqn)(\.policies)?", node.module or ""):
        known, here = ("MlpPolicy", "CnnPolicy", "MultiInputPolicy"), "sunrise.agents.policies"
    ours = [alias for alias in node.names if alias.name in known]
    rest = [alias for alias in node.names if alias.name not in known]
    made = [ast.ImportFrom(here, ours, 0)] if ours else []
    made += [ast.ImportFrom(node.module, rest, 0)] if rest else []
    return "; ".join(ast.unparse(each) for each in made)


def outcome(code: str, fragment: str, whose: str) -> dict[str, Any]:
    """What comes of a piece of code in a process of its own: its `outcome`, and its `sentence` or its `error`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "block.py"
        path.write_text(code)
        quiet = {"SDL_VIDEODRIVER": "dummy", "MPLBACKEND": "Agg", "WANDB_MODE": "offline", "COLUMNS": "160"}
        quiet |= {"MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db", "MLFLOW_ALLOW_FILE_STORE": "true"}
        command = [sys.executable, str(HERE / "guide_block.py"), str(path), fragment, whose]
        answer = path.with_suffix(".json")
        try:
            done = subprocess.run(
                command, cwd=folder, env={**os.environ, **quiet}, capture_output=True, timeout=SECONDS, check=False
            )
            why = f"the process ended with {done.returncode}: {done.stderr[-300:]!r}"
        except subprocess.TimeoutExpired:  # windows of processes of their own may keep a process that is done
            why = f"not done after {SECONDS} seconds"
        return dict(json.loads(answer.read_text())) if answer.exists() else {"outcome": "error", "error": why}


def tried(block: Block) -> dict[str, Any]:
    """A row of the table, without any of the block's code."""
    row = block.row
    for package, needed in ELSEWHERE.items():
        if package in block.code:
            return {**row, "outcome": "needs", "sentence": needed}
    try:
        code = adapted(block)
    except SyntaxError:
        return {**row, "outcome": "fragment"}
    fragment = "" if "import" in code else (block.stand_in or next(name for name in OURS if name in block.names))
    found = outcome(code, fragment, "ours")
    if found["outcome"] == "error" and not fragment:
        theirs = outcome(block.code, fragment, "theirs")
        if theirs["outcome"] == "error":
            found["outcome"] = "error there too"
    said = found.get("sentence") or found.pop("error", "")
    print(f"{block.page}, {block.heading} ({block.number}): {found['outcome']} {said}", flush=True)
    return row | found


def pages_of(source: Path) -> dict[str, str]:
    """The text of every page, from a checkout or from a git directory."""
    if (source / "docs").is_dir():
        found = [source / "README.md", *sorted((source / "docs").rglob("*.md"))]
        return {str(path.relative_to(source)): path.read_text() for path in found}
    git = ["git", "--git-dir", str(source)]
    names = subprocess.check_output([*git, "ls-tree", "-r", "--name-only", "HEAD", "README.md", "docs"], text=True)
    pages = [name for name in names.splitlines() if name.endswith(".md")]
    return {name: subprocess.check_output([*git, "show", f"HEAD:{name}"], text=True) for name in pages}


def table(rows: list[dict[str, Any]]) -> str:
    """The rows in Markdown, those next to one another that say the same of one heading as one."""
    lines = ["| page, heading | with | outcome |", "|---|---|---|"]
    for row in rows:
        page, said = row["page"].removeprefix("docs/").removesuffix(".md"), row.get("sentence", "")
        what = {"needs": f"not tried: needs {said}", "refused": f"refused: “{said}”", "fragment": "not a whole script"}
        result = what.get(row["outcome"], row["outcome"])
        line = f"| {page}: {row['heading']} | {row['stand_in'] or 'as written'} | {result} |".replace("\n", " ")
        if line != lines[-1]:
            lines.append(line)
    return "\n".join(lines)


def main() -> None:
    """Run all blocks, or those whose `page#number` has one of the words after PATH: the others' rows stay."""
    source, *words = sys.argv[1:]
    everything = list(blocks(pages_of(Path(source))))
    chosen = [
        block for block in everything if not words or any(word in f"{block.page}#{block.number}" for word in words)
    ]
    known = {(block.page, block.number): block.row | {"outcome": "not run yet"} for block in everything}
    old = json.loads(RESULTS.read_text()) if words and RESULTS.exists() else []
    known |= {(row["page"], row["block"]): row for row in old if (row["page"], row["block"]) in known}
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for done in as_completed([pool.submit(tried, block) for block in chosen]):
            known[done.result()["page"], done.result()["block"]] = done.result()
            keep(list(known.values()))


def keep(rows: list[dict[str, Any]]) -> None:
    """Write what is known: a long run that is ended has not been for nothing."""
    RESULTS.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{table(rows)}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
