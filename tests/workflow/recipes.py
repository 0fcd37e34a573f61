"""The recipes of CONTRIBUTING.md, carried out as they are written."""

import re
import textwrap
from pathlib import Path

CONTRIBUTING = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
BLOCK = re.compile(r"^( *)```(?:\w+) (\S+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def files_of(title: str) -> dict[str, str]:
    """What a recipe writes, by file: each block of code in its section that names a file."""
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", CONTRIBUTING.read_text(), re.MULTILINE | re.DOTALL))
    return {file: textwrap.dedent(text) for _, file, text in BLOCK.findall(sections[title])}


def carry_out(title: str, folder: Path) -> dict[str, str]:
    """Write the files of a recipe into a copy of the repository; what a file holds already stays before it."""
    files = files_of(title)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((path.read_text() if path.exists() else "") + text)
    return files
