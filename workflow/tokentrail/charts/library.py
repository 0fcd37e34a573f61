"""The JavaScript that draws a chart on its page: one bundle for all charts of a run, because bundling takes seconds."""

from __future__ import annotations

import altair as alt
import vl_convert

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script that needs no network."""
    return vl_convert.javascript_bundle(vl_version=VEGA_LITE)
