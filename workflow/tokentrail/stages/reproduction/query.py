"""The query of a figure, as text: one SELECT over the tables of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass

QUOTED = re.compile(r"'(?:[^']|'')*'")
NAMED = re.compile(r'"[^"]*"')
BRACKETED = re.compile(r"\([^()]*\)")
RANGE = re.compile(r"\bBETWEEN\s+\S+\s+AND\b", re.IGNORECASE)
SUBQUERY = re.compile(r"\bFROM\s+(_+)", re.IGNORECASE)
ROWS = re.compile(
    r"\bFROM\s+(?P<table>\w+)(?:\s+WHERE\s(?P<where>.*?))?"
    r"\s*(?:$|\b(?:GROUP\s+BY|HAVING|ORDER\s+BY|LIMIT\s+\d+|OFFSET\s+\d+)\b)",
    re.IGNORECASE | re.DOTALL,
)
OPENS = re.compile(r'\b((?:read|scan)_\w+)["`]?(?:\s|/\*.*?\*/|--[^\n]*)*\(', re.IGNORECASE | re.DOTALL)
"""A call of a function that stands for a table and opens a file, such as `read_csv`. It is refused in texts as well."""


@dataclass(frozen=True)
class Rows:
    """The rows that a query is about."""

    table: str
    conditions: tuple[str, ...]


def words(query: str) -> set[str]:
    """The words of a query that stand in no text, in lower case."""
    return set(re.findall(r"\w+", QUOTED.sub(" ", query).lower()))


def refused(query: str) -> str:
    """Why a query may not run, whatever tables there are; empty if it may."""
    if not re.match(r"\s*SELECT\b", query, re.IGNORECASE):
        return "is no SELECT; write one, as in SELECT probability FROM next_token WHERE prompt = 'alice' AND rank = 0"
    if found := OPENS.search(query):
        return f"opens a file with {found[1]}; select from the tables of the run instead"
    return ""


def rows_of(query: str) -> Rows | None:
    """The one table that a query reads, and the conditions that its WHERE joins by AND; None if it reads several.

    Of a query over a subquery, those of the subquery.
    """
    outline = outlined(query)
    if inner := SUBQUERY.search(outline):
        return rows_of(query[inner.start(1) + 1 : inner.end(1) - 1])
    found = ROWS.search(outline)
    if found is None or len(re.findall(r"(?i)\bSELECT\b", outline)) > 1:
        return None
    if not found["where"]:
        return Rows(found["table"].lower(), ())
    where = query[slice(*found.span("where"))]
    cuts = [] if re.search(r"\bOR\b", found["where"], re.IGNORECASE) else re.finditer(r"(?i)\bAND\b", found["where"])
    edges = [0, *(edge for cut in cuts for edge in cut.span()), len(where)]
    conditions = (where[begin:end].strip() for begin, end in zip(edges[::2], edges[1::2], strict=True))
    return Rows(found["table"].lower(), tuple(conditions))


def outlined(query: str) -> str:
    """The query, as long as it is, with texts, quoted names, ranges and what stands in brackets blotted out."""
    outline = blotted(NAMED, blotted(QUOTED, query))
    while BRACKETED.search(outline):
        outline = blotted(BRACKETED, outline)
    return blotted(RANGE, outline)


def blotted(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda found: "_" * len(found[0]), text)
