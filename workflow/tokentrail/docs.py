"""The documentation that is made from the code: the configuration's schema and keys, and the data dictionary.

`python -m tokentrail.docs` writes them where they are kept; a test holds the kept files to the code.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from tokentrail import architecture, rooms, tables
from tokentrail.config import Config
from tokentrail.forward.families import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "workflow/schemas/config.schema.json"
KEYS = ROOT / "config/README.md"
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
REFERENCE_TABLES = ("training", "evaluation")
"""The tables of the reference models, which no run makes: their own rules do."""


def schema_text() -> str:
    """The JSON Schema of the configuration."""
    return json.dumps(Config.model_json_schema(), indent=2, ensure_ascii=False) + "\n"


def with_parts(path: Path) -> str:
    """The text of a README with its generated parts, which stand between markers, made anew. Raises ValueError."""
    kept = path.read_text(encoding="utf-8")
    for part, make in PARTS[path].items():
        marked = re.compile(rf"(<!-- {part} -->\n).*?(<!-- end of {part} -->)", re.DOTALL)
        text = make()
        kept, found = marked.subn(lambda m, text=text: f"{m[1]}\n{text}\n{m[2]}", kept)
        if found != 1:
            raise ValueError(f"{path.name} must have one place for its {part}, between markers")
    return kept


def stage_list() -> str:
    """Every stage and its question as a Markdown table."""
    lines = ["| stage | question |", "|---|---|"]
    lines += [f"| `{name}` | {stage.question} |" for name, stage in rooms.stages().items()]
    return "\n".join(lines) + "\n"


def family_list() -> str:
    """Every family as a Markdown table: the model types that it reads, and what it is."""
    lines = ["| model type | family |", "|---|---|"]
    for family in dict.fromkeys(FAMILIES.values()):
        types = ", ".join(f"`{model_type}`" for model_type in family.model_types)
        lines.append(f"| {types} | {family.about} |")
    return "\n".join(lines) + "\n"


def key_reference() -> str:
    """Every key of the configuration as a Markdown table: key, type, default, meaning."""
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    lines += [f"| `{key}` | {kind} | {default} | {meaning} |" for key, kind, default, meaning in _keys(Config, "")]
    return "\n".join(lines) + "\n"


def _keys(section: type[BaseModel], prefix: str):
    for name, field in section.model_fields.items():
        kind = _section_below(field.annotation)
        default = "required" if field.is_required() else "" if kind else f"`{json.dumps(field.default, default=str)}`"
        yield f"{prefix}{name}", _type_name(field.annotation), default, (field.description or "").replace("|", "\\|")
        for below in kind:
            step = ".<name>" if get_origin(field.annotation) is dict else ""
            variant = f" ({below.__name__.removesuffix('Source').lower()})" if len(kind) > 1 else ""
            yield from _keys(below, f"{prefix}{name}{step}{variant}.")


def _section_below(annotation) -> list[type[BaseModel]]:
    """The sections that a key's value is made of: none for scalars, several for a choice."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for part in get_args(annotation) for section in _section_below(part)]


def _type_name(annotation) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_name(parts[0])
    if origin is Literal:
        return " or ".join(f"`{part}`" for part in parts)
    if origin is dict:
        return "mapping"
    if origin is list:
        return f"list of {_type_name(parts[0])}"
    if origin in (UnionType, Union):
        return " or ".join(dict.fromkeys(_type_name(part) for part in parts if part is not type(None)))
    if issubclass(annotation, BaseModel):
        return "section"
    return {str: "text", int: "whole number", float: "number", bool: "true or false"}[annotation]


def data_dictionary() -> str:
    """All tables as Markdown, those of the reference models last: one section a table, one row a column."""
    lines: list[str] = []
    for name in (*rooms.tables(), *REFERENCE_TABLES):
        schema = tables.schema_of(name)
        lines += [f"### `{name}`", "", (schema.__doc__ or "").strip(), ""]
        lines += ["| column | type | unit | meaning |", "|---|---|---|---|"]
        for column, declared in schema.columns().items():
            unit = (declared.metadata or {}).get("unit", "")
            meaning = (declared.description or "").replace("|", "\\|")
            lines.append(f"| {column} | {type(declared).__name__} | {unit} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


PARTS = {
    README: {"stages": stage_list, "families": family_list},
    KEYS: {"keys": key_reference, "tables": data_dictionary},
    CONTRIBUTING: {"floors": architecture.picture},
}
"""The generated parts of the READMEs, by their markers."""


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    for readme in PARTS:
        readme.write_text(with_parts(readme), encoding="utf-8")
