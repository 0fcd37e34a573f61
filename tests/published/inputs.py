"""The inputs of the published figures, by the names that the ledger gives them."""

from __future__ import annotations

from pathlib import Path

import yaml

CONFIG = yaml.safe_load(Path(__file__).parents[2].joinpath("config/config.yaml").read_text(encoding="utf-8"))
FILLER = CONFIG["stages"]["filler"]
PARAGRAPH = FILLER["fillers"]["town"].strip()
REPEATS = (0, 1, 4, 16)


def filled(repeats: int) -> str:
    return " ".join([FILLER["head"], *[PARAGRAPH] * repeats, FILLER["tail"]])


WORDS = [" Mirabel", "안녕하세요", " to", "France", " France", " Paris", "Ciechanowski", "antidisestablishmentarianism"]
WORDS += ["1998", "127.0.0.1", " 3.14159"]
TEXTS = {
    "alice": CONFIG["prompts"]["alice"]["text"],
    "capital-france": CONFIG["prompts"]["capital-france"]["text"],
    "capital-japan": CONFIG["prompts"]["capital-japan"]["text"],
    "demo-france-japan": "The capital of France is Paris. The capital of Japan is",
    "cat-sat": "The cat sat on the",
    **{f"filler-{repeats}": filled(repeats) for repeats in REPEATS},
    **{word: word for word in WORDS},
}
