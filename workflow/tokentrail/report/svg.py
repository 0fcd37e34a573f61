"""A chart's drawing, made fit to stand inside the page."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from markupsafe import Markup

SVG = "http://www.w3.org/2000/svg"
KEPT = {"svg", "g", "path", "rect", "line", "circle", "text", "tspan", "defs", "clipPath", "linearGradient", "stop"}
LOCAL = re.compile(r"url\(#([^)]+)\)")


def inline(path: Path, name: str, alternative: str) -> Markup | None:
    """The SVG at `path` as markup, named `name` and described by `alternative`; None if there is no such file.

    Only shapes and text are kept: no scripts, links, event handlers, styles or foreign content. Ids get the name in
    front, so that two charts on one page do not share any. The drawing is one image to a screen reader.
    """
    if not path.is_file():
        return None
    root = ElementTree.fromstring(path.read_bytes())
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
