"""Tables that can be read on a narrow screen, where each cell stands below the others and must say what it is."""

from __future__ import annotations

from html import escape, unescape
from html.parser import HTMLParser

from markupsafe import Markup


def labelled(table: str) -> Markup:
    """The rows of a table, `<thead>` and `<tbody>`, with the heading of its column in each cell as `data-label`.

    A note in a heading is read once, in the heading, and is no part of the label.
    """
    return Markup(Labeller(str(table)).written)


class Labeller(HTMLParser):
    """Writes what it reads, and the headings into the cells that follow them."""

    def __init__(self, table: str):
        super().__init__(convert_charrefs=False)
        self.written = ""
        self.headings: list[str] = []
        self.in_head = self.in_heading = self.in_note = False
        self.column = 0
        self.feed(table)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        start = self.get_starttag_text() or ""
        span = int(dict(attributes).get("colspan") or 1)
        if tag == "thead":
            self.in_head = True
        elif tag == "tr":
            self.column = 0
        elif tag == "th" and self.in_head:
            self.headings += [""] * span
            self.in_heading = True
        elif tag == "br" and self.in_heading:
            self.headings[-1] += " "
        elif tag == "span" and self.in_heading:
            self.in_note = dict(attributes).get("class") == "note"
        elif tag in ("th", "td"):
            heading = " ".join("".join(self.headings[self.column : self.column + span]).split())
            if tag == "td" and span == 1 and heading:
                start = f'{start[:-1]} data-label="{escape(heading)}">'
            self.column += span
        self.written += start

    def handle_endtag(self, tag: str) -> None:
        if tag == "thead":
            self.in_head = False
        elif tag == "th":
            self.in_heading = False
        elif tag == "span":
            self.in_note = False
        self.written += f"</{tag}>"

    def handle_data(self, text: str) -> None:
        if self.in_heading and not self.in_note:
            self.headings[-1] += text
        self.written += text

    def handle_entityref(self, name: str) -> None:
        self.handle_character(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.handle_character(f"&#{name};")

    def handle_character(self, reference: str) -> None:
        if self.in_heading and not self.in_note:
            self.headings[-1] += unescape(reference)
        self.written += reference
