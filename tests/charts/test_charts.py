"""Every chart: it draws one model and several, tells its tables and limits, and lets no text out of its place."""

import functools
import itertools
import json
from collections.abc import Iterator
from html.parser import HTMLParser
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import altair as alt
import polars as pl
import pytest
import synthetic_tables as synthetic
from house import chart_module
from tokentrail import rooms
from tokentrail.charts import library, save, theme
from tokentrail.charts.colour import DARK_PAPER, MARK_CONTRAST, PAPER, contrast, on_dark
from tokentrail.charts.looks import looks
from tokentrail.provenance import constant
from tokentrail.report.svg import PAINTED, painted
from tokentrail.stage import CHART_KINDS

LIBRARY = library.bundle()
GUIDES = {theme.PAPER, theme.GRID, theme.FAINT}
"""Colours of what lies behind the marks or leads from one to another, and of the inside of hollow marks."""
SHADED = {"heads", "long_range", "merges", "mixing", "patching"}
"""Charts whose squares are shaded by a number, so that those of a small one are pale."""
CHARTS = sorted(rooms.charts())


def draw(name: str, models: int, tables=None) -> alt.TopLevelMixin:
    module = chart_module(name)
    tables = tables or synthetic.tables(models)
    return module.chart({table: tables[table] for table in module.TABLES}, synthetic.settings(models))


@functools.cache
def spec_text(name: str, models: int) -> str:
    return json.dumps(draw(name, models).to_dict())


def spec_of(name: str, models: int) -> dict:
    return json.loads(spec_text(name, models))


@functools.cache
def svg_of(name: str, models: int) -> str:
    return save.encode_svg(spec_of(name, models))


def shapes(svg: str) -> Iterator[tuple[str, float, Element]]:
    """Each drawn element: the class of the group that it is in, its opacity, and itself."""

    def within(element: Element, of: str, opacity: float) -> Iterator[tuple[str, float, Element]]:
        opacity *= float(element.get("opacity", 1))
        yield of, opacity, element
        for child in element:
            yield from within(child, child.get("class", "") if "mark-" in child.get("class", "") else of, opacity)

    return within(ElementTree.fromstring(svg), "", 1.0)


def mixed(colour: str, paper: str, share: float) -> str:
    """The colour laid over the paper, of which it hides a share."""
    over, under = (bytes.fromhex(each[1:]) for each in (colour, paper))
    return "#" + bytes(round(share * o + (1 - share) * u) for o, u in zip(over, under, strict=True)).hex()


def texts(value) -> list[str]:
    """All strings in a specification."""
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [found for part in parts for found in texts(part)]


def test_the_charts_that_the_report_shows_are_there():
    trace = {"name_swaps", "name_swaps_broad", "lens", "residual", "parity", "next_token", "census"}
    parts = {"ablations", "heads", "filler_sweep", "long_range", "mixing", "patching", "attribution", "sink"}
    times = {"decode_latency", "batch", "prefill", "roofline"}
    quantization = {"quantization_sweeps", "quantization_parts", "quantization_curve"}
    assert trace | parts | times | quantization <= set(CHARTS)


@pytest.mark.parametrize("name", CHARTS)
def test_it_declares_its_tables_and_what_it_shows_and_does_not_show(name):
    assert set(constant(rooms.charts()[name], "TABLES")) <= set(rooms.schemas())
    shows, does_not = constant(rooms.charts()[name], "CAPTION").strip().split("\n\n")
    assert shows.endswith(".") and does_not.startswith("It does not show ") and does_not.endswith(".")


@pytest.mark.parametrize("name", CHARTS)
def test_one_model_is_saved_in_every_format_with_equal_bytes(name, tmp_path):
    first = [tmp_path / f"first.{kind}" for kind in CHART_KINDS]
    second = [tmp_path / f"second.{kind}" for kind in CHART_KINDS]
    save.save(draw(name, 1), first, "the library")
    save.save(draw(name, 1), second, "the library")
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    html, svg, png, spec = (path.read_bytes() for path in first)
    assert png.startswith(b"\x89PNG")
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert "vega-lite" in json.loads(spec)["$schema"]
    assert b"http-equiv" in html and b"<script>the library</script>" in html


@pytest.mark.parametrize("name", CHARTS)
def test_four_models_of_two_depths_are_drawn_and_named_apart(name):
    svg = svg_of(name, 4)
    assert "Beta (beta)" in svg and "Beta (gamma)" in svg
    assert "NaN" not in svg and "Infinity" not in svg


@pytest.mark.parametrize("name", CHARTS)
def test_every_mark_stands_out_from_the_paper_light_and_dark(name):
    marks = 0
    for of, opacity, element in shapes(svg_of(name, 4)):
        band_or_square = "mark-area" in of or ("mark-rect" in of and name in SHADED)
        if "role-mark" not in of or "mark-text" in of or band_or_square or not opacity:
            continue
        kinds = {found[:1]: f"#{found[2:]}" for found in painted(element.attrib)}
        drawn = [
            (colour, opacity * float(element.get(f"{attribute}-opacity", 1)))
            for attribute, short in PAINTED.items()
            if (colour := kinds.get(short)) and colour not in GUIDES
        ]
        if drawn:
            marks += 1
            assert max(contrast(mixed(colour, PAPER, share), PAPER) for colour, share in drawn) >= MARK_CONTRAST
            dark = [contrast(mixed(on_dark(colour), DARK_PAPER, share), DARK_PAPER) for colour, share in drawn]
            assert max(dark) >= MARK_CONTRAST
    assert marks or name in SHADED


@pytest.mark.parametrize("name", CHARTS)
def test_every_colour_has_its_counterpart_on_a_dark_page(name):
    for _, _, element in shapes(svg_of(name, 4)):
        coloured = [a for a in PAINTED if not element.get(a, "none").startswith(("none", "transparent", "url"))]
        assert len(painted(element.attrib)) == len(coloured), element.attrib


@pytest.mark.parametrize("name", CHARTS)
def test_without_rows_it_says_so(name):
    chart = draw(name, 1, synthetic.empty())
    assert "message" in json.dumps(chart.to_dict())
    assert save.encode_svg(chart.to_dict()).startswith("<svg")


@pytest.mark.parametrize("name", CHARTS)
def test_what_must_be_known_of_the_weights_is_in_the_title(name):
    assert any("Q4_1" in line for line in spec_of(name, 4)["title"]["subtitle"])


class Scripts(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.found += [tag] if tag in ("script", "img", "iframe", "object", "title") else []
        self.handlers += [key for key, _ in attributes if key.startswith("on")]


@pytest.mark.parametrize("name", CHARTS)
def test_hostile_text_adds_no_tag_to_the_page(name):
    page = save.page(spec_of(name, 4), LIBRARY)
    parser = Scripts()
    parser.feed(page)
    assert parser.found == ["title", "script", "script", "script"]
    assert not parser.handlers
    embedded = page.split('id="spec">')[1].split("</script>")[0]
    assert not set("<>&") & set(embedded)


@pytest.mark.parametrize("name", ["next_token", "name_swaps", "lens", "ablations", "heads", "patching", "mixing"])
def test_hostile_text_is_data_and_never_an_expression(name):
    spec = spec_of(name, 4)
    data = spec.pop("datasets", {})
    for key in ("description", "title", "config"):
        spec.pop(key)
    outside = [text for text in texts(spec) if any(bad in text for bad in ("alert", "onerror", "7 * 7", "datum.x"))]
    assert all("Alpha" in text for text in outside)
    assert any("↵" in text or "script" in text for text in texts(data))


def test_model_names_keep_their_look_when_a_model_is_missing():
    settings = synthetic.settings(4)
    frame = pl.DataFrame({"model": ["gamma"]})
    assert theme.drawn(frame, settings) == ["gamma"]
    assert theme.scale(settings, "colour").to_dict()["range"][2] == looks(settings)["gamma"].colour


def test_four_models_differ_in_lightness_dash_and_shape():
    def lightness(colour: str) -> float:
        red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for one, other in itertools.combinations(looks(synthetic.settings(4)).values(), 2):
        assert abs(lightness(one.colour) - lightness(other.colour)) > 0.09
        assert one.dash != other.dash and one.shape != other.shape


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\.bmp"):
        save.save(draw("census", 1), [tmp_path / "census.bmp"], "")
    assert not list(tmp_path.iterdir())


def test_a_difference_of_zero_has_a_place_on_the_logarithmic_axis():
    tables = synthetic.tables(1)
    tables["parity"] = tables["parity"].with_columns(max_abs_logit_diff=pl.lit(0.0))
    assert "NaN" not in save.encode_svg(draw("parity", 1, tables).to_dict())
