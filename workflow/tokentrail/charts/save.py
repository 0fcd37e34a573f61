"""A chart as files: a page that opens offline, a drawing, a picture, and the Vega-Lite it was made from."""

from __future__ import annotations

import functools
import html
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from tokentrail.charts.library import VEGA_LITE
from tokentrail.tables import atomic_path

PNG_SCALE = 2
GRADIENT = re.compile(r'(?<=[#"])gradient_\d+(?=[")])')

# Expressions are interpreted (`ast`), not compiled, so the page runs no code made from text; and it may fetch nothing.
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; \
style-src 'unsafe-inline'; img-src data: blob:">
<title>{title}</title>
<style>
body {{ margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #1c2430; background: #fff;
  font: 16px/1.5 Arial, Helvetica, "Liberation Sans", sans-serif; }}
#chart {{ overflow-x: auto; }}
</style>
</head>
<body>
<div id="chart"></div>
<p>{description}</p>
<p>{caption}</p>
<noscript><p>This page draws with JavaScript. The same chart lies beside it as .svg and .png.</p></noscript>
<script>{library}</script>
<script type="application/json" id="spec">{spec}</script>
<script>
vegaEmbed("#chart", JSON.parse(document.getElementById("spec").textContent),
  {{ast: true, actions: {{export: true, source: false, compiled: false, editor: false}}}});
</script>
</body>
</html>
"""


def save(chart: alt.TopLevelMixin, paths: Iterable[Path], library: str) -> None:
    """Write the chart to each of `paths`, in the format that its suffix names; equal charts give equal bytes.

    `library` is the script that a page draws with, as `library.bundle` makes it. The specification is not checked
    against Vega-Lite's schema, which takes longer than drawing it; the tests do that.
    """
    with alt.data_transformers.enable("default", max_rows=None):
        spec = chart.to_dict(validate=False)
    svg = functools.cache(lambda: encode_svg(spec))
    for path in map(Path, paths):
        content = encode(spec, svg, path.suffix, library)
        with atomic_path(path) as part:
            part.write_bytes(content)


def encode(spec: dict[str, Any], svg: Callable[[], str], suffix: str, library: str) -> bytes:
    match suffix:
        case ".html":
            return page(spec, library).encode()
        case ".svg":
            return svg().encode()
        case ".png":
            return vl_convert.svg_to_png(svg(), scale=PNG_SCALE)
        case ".json":
            return (json.dumps(spec, indent=1, ensure_ascii=False) + "\n").encode()
    raise ValueError(f"a chart cannot be written as {suffix!r}; use .html, .svg, .png or .json")


def encode_svg(spec: dict[str, Any]) -> str:
    """The drawing, with its description as its title.

    The renderer numbers gradients over all drawings of a process; here they start at 0 in each.
    """
    svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
    svg = svg.replace(">", f"><title>{html.escape(spec.get('description', ''))}</title>", 1)
    numbers = {name: f"gradient_{place}" for place, name in enumerate(dict.fromkeys(GRADIENT.findall(svg)))}
    return GRADIENT.sub(lambda found: numbers[found.group()], svg)


def page(spec: dict[str, Any], library: str) -> str:
    """The chart as one HTML file with the library inside it. Nothing in the chart's text can end its script tag."""
    return PAGE.format(
        title=html.escape(spec["title"]["text"]),
        description=html.escape(spec.get("description", "")),
        caption=html.escape(spec.get("usermeta", {}).get("caption", "")),
        library=library,
        spec=json_in_html(spec),
    )


def json_in_html(value: Any) -> str:
    """JSON that holds no character with a meaning in HTML."""
    escapes = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
    return json.dumps(value, ensure_ascii=False).translate(escapes)
