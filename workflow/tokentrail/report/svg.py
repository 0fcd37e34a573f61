"""A chart's drawing, made fit to stand inside the page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from markupsafe import Markup

from tokentrail.charts.colour import PAPER, on_dark

SVG = "http://www.w3.org/2000/svg"
KEPT = {"svg", "g", "path", "rect", "line", "circle", "text", "tspan", "defs", "clipPath", "linearGradient", "stop"}
LOCAL = re.compile(r"url\(#([^)]+)\)")
HEX = re.compile(r"#([0-9a-f]{6}|[0-9a-f]{3})")
RGB = re.compile(r"rgb\((\d+), ?(\d+), ?(\d+)\)")
PAINTED = {"fill": "f", "stroke": "s", "stop-color": "c"}
"""The attributes that hold a colour, and what the classes that stand for them begin with."""
CLASS = re.compile(rf"\b([{''.join(PAINTED.values())}])-([0-9a-f]{{6}})\b")


def inline(path: Path, name: str, caption: str) -> Markup | None:
    """The SVG at `path` as markup, named `name`; None if there is no such file.

    Only shapes and text are kept: no scripts, links, event handlers, styles or foreign content. Ids get the name in
    front, so that two charts on one page do not share any. The drawing is one image to a screen reader, described by
    its own title, or by `caption` if it has none. Each colour has a class, which `on_a_dark_page` is about; the paper
    is that of the page.
    """
    if not path.is_file():
        return None
    root = ElementTree.fromstring(path.read_bytes())
    alternative = root.findtext(f"{{{SVG}}}title") or caption
    paper = root.find(f"{{{SVG}}}rect")
    if paper is not None and paper.get("fill") == PAPER:
        root.remove(paper)
    for parent in list(root.iter()):
        for child in list(parent):
            if local(child.tag) not in KEPT:
                parent.remove(child)
    for element in root.iter():
        element.tag = local(element.tag)
        element.attrib = {
            key: cleaned(key, value, name)
            for key, value in element.attrib.items()
            if allowed(key) and "javascript:" not in value.lower()
        }
        if classes := painted(element.attrib):
            element.set("class", " ".join(classes))
    root.attrib |= {"xmlns": SVG, "role": "img", "aria-label": alternative}
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def local(tag: str) -> str:
    """A tag without its namespace; tags of other namespaces than SVG's keep it, and so are never kept."""
    return tag.removeprefix(f"{{{SVG}}}") if isinstance(tag, str) else ""


def allowed(attribute: str) -> bool:
    """Not an event handler, a link, a style, or one of the many notes for screen readers on single marks."""
    return not attribute.startswith(("on", "aria-", "{")) and attribute not in ("href", "style", "role", "class")


def cleaned(key: str, value: str, name: str) -> str:
    return f"{name}-{value}" if key == "id" else LOCAL.sub(rf"url(#{name}-\1)", value)


def painted(attributes: dict[str, str]) -> list[str]:
    """A class for each colour of an element: `f-12336b` for one that is filled with #12336b."""
    found = []
    for attribute, short in PAINTED.items():
        value = attributes.get(attribute, "").lower()
        if match := HEX.fullmatch(value):
            found.append(f"{short}-{match[1] if len(match[1]) == 6 else ''.join(2 * digit for digit in match[1])}")
        elif match := RGB.fullmatch(value):
            found.append(f"{short}-{''.join(f'{int(channel):02x}' for channel in match.groups())}")
    return found


def on_a_dark_page(drawings: Iterable[str]) -> Markup:
    """Style rules that give the colours of these drawings their counterparts on a dark page."""
    found = sorted({match.groups() for drawing in drawings for match in CLASS.finditer(drawing)})
    attribute = {short: name for name, short in PAINTED.items()}
    return Markup("".join(f".{s}-{c}{{{attribute[s]}:{on_dark(f'#{c}')}}}" for s, c in found))
