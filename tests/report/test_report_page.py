"""The page: whole, self-contained, readable without scripts, and safe from the text it shows."""

import itertools
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import polars as pl
import pytest
import synthetic_tables as synthetic
from test_charts import CHARTS
from tokentrail.report import svg
from tokentrail.report.build import build
from tokentrail.report.narrow import labelled
from tokentrail.stages.cells import section as cells_section
from tokentrail.stages.quantization import chart_quantization_curve as quantization_curve
from tokentrail.stages.quantization import chart_quantization_parts as quantization_parts
from tokentrail.stages.quantization import chart_quantization_sweeps as quantization_sweeps
from tokentrail.stages.quantization.quantization_quality import QUANTITIES

VOID = {"meta", "br", "img", "input", "hr", "link"}
DRAWING = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="10" height="10"
 viewBox="0 0 10 10" onload="alert(1)"><defs><clipPath id="clip0"><rect width="5" height="5"/></clipPath></defs>
<script>alert(1)</script><foreignObject><b>x</b></foreignObject><style>*{}</style>
<a xlink:href="javascript:alert(1)"><text>linked</text></a>
<g clip-path="url(#clip0)" onclick="alert(1)" aria-label="noise"><text>&lt;b&gt; token</text></g></svg>"""


class Page(HTMLParser):
    """Reads a page, and fails on tags that do not nest."""

    def __init__(self, html: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.words: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes <{self.open[-1] if self.open else 'nothing'}>"
        self.open.pop()

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


@pytest.fixture
def drawings(tmp_path):
    for name in ("parity", "parity_layers", "next_token", "name_swaps", "name_swaps_broad", "lens", "residual"):
        (tmp_path / f"{name}.svg").write_text(DRAWING)
    return tmp_path


@pytest.mark.parametrize("models", [1, 2, 4])
def test_the_page_holds_every_section_and_nothing_from_outside(models, drawings):
    html = build(synthetic.tables(models), drawings, synthetic.settings(models))
    page = Page(html)
    names = [tag for tag, _ in page.tags]
    assert not {"script", "img", "link", "iframe", "object"} & set(names)
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert all(link.startswith(("#", "charts/")) for link in links)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert not [key for _, attributes in page.tags for key in attributes if key.startswith("on")]
    assert page.text.count("It does not show ") == len(CHARTS), "every chart stands on the page, once"
    assert "The chart census has not been drawn" in page.text


def test_headings_go_down_one_level_at_a_time(drawings):
    levels = [
        int(tag[1])
        for tag, _ in Page(build(synthetic.tables(2), drawings, synthetic.settings(2))).tags
        if tag in {"h1", "h2", "h3", "h4"}
    ]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_hostile_text_stays_text(drawings):
    html = build(synthetic.tables(2), drawings, synthetic.settings(2))
    assert "<script" not in html and "<img" not in html
    assert "{{·7·*·7·}}" in html
    assert "\u202e" not in html and "\u2028" not in html


def test_what_must_be_known_of_the_weights_stands_wherever_the_model_does(drawings):
    html = build(synthetic.tables(2), drawings, synthetic.settings(2))
    tables_with_the_model = html.count('scope="rowgroup"') // 2
    assert html.count("(Q4_1 &lt;b&gt;weights&lt;/b&gt;)") >= tables_with_the_model + 1


def test_what_the_configuration_changed_in_a_model_stands_with_its_files(drawings):
    tables = synthetic.tables(1)
    before = Page(build(tables, drawings, synthetic.settings(1))).text
    assert "changed by the configuration" not in before
    tables["weights"] = tables["weights"].with_columns(changes=pl.lit('{"rope_theta": "<b>"}'))
    after = Page(build(tables, drawings, synthetic.settings(1))).text
    assert 'changed by the configuration: {"rope_theta": "<b>"}' in after


def test_what_is_to_be_known_of_how_a_prompt_is_read_stands_with_its_tokens(drawings):
    tables = synthetic.tables(1)
    assert "To be known" not in Page(build(tables, drawings, synthetic.settings(1))).text
    said = {"note": pl.lit("holds '<b>'"), "bos_policy": pl.lit("added; </b> after the text is left off")}
    tables["tokens"] = tables["tokens"].with_columns(**said)
    text = Page(build(tables, drawings, synthetic.settings(1))).text
    assert "To be known: holds '<b>'." in text
    assert "added; </b> after the text is left off." in text


def test_a_scheme_that_a_model_has_no_answers_with_is_told_and_not_drawn(drawings):
    tables = synthetic.tables(1)
    asked = tables["quantization"]
    lost = (
        asked.filter(execution="simulated")
        .head(1)
        .with_columns(
            scheme=pl.lit("too-large"),
            status=pl.lit("skipped"),
            reason=pl.lit("float16 cannot hold a scale"),
            top1_token=pl.lit(None, pl.String),
            passage=pl.lit(""),
            **{name: pl.lit(None, asked.schema[name]) for name in ("kl", "target_rank", *QUANTITIES)},
        )
    )
    tables["quantization"] = pl.concat([asked, lost])
    text = Page(build(tables, drawings, synthetic.settings(1))).text
    assert re.search(r"Asked and not measured: .*too-large \(float16 cannot hold a scale\)", text)
    settings = {"models": synthetic.settings(1)["models"]}
    for drawn in (quantization_curve, quantization_parts, quantization_sweeps):
        charts = [drawn.chart({"quantization": rows}, settings).to_dict() for rows in (asked, tables["quantization"])]
        assert charts[0] == charts[1]


def test_empty_tables_are_told(tmp_path):
    page = Page(build(synthetic.empty(), tmp_path, synthetic.settings(1)))
    assert "No swap set is configured" in page.text
    assert "Nothing was measured on this model." in page.text
    assert "has not been drawn" in page.text
    for said in ("No prompt was ablated", "No filler is configured", "No pair of prompts is configured"):
        assert said in page.text


def test_no_prompts_at_all(tmp_path):
    Page(build(synthetic.empty(), tmp_path, synthetic.settings(1) | {"prompts": {}}))


def test_numbers_on_the_page_are_those_of_the_tables(drawings):
    text = Page(build(synthetic.tables(1), drawings, synthetic.settings(1))).text
    assert "It continues with ·Alice with probability 0.500" in text
    assert "leads after layer 4 (counted from 0; the last is 5)" in text
    assert not re.search(r"\b0\.000\b", text), "a number that is not nothing is not shown as nothing"


def test_equal_tables_give_equal_pages(drawings):
    pages = {build(synthetic.tables(2), drawings, synthetic.settings(2)) for _ in range(2)}
    assert len(pages) == 1


def test_a_drawing_is_stripped_to_shapes_and_text(tmp_path):
    (tmp_path / "c.svg").write_text(DRAWING)
    inline = str(svg.inline(tmp_path / "c.svg", "lens", 'says "this" & that'))
    for bad in ("script", "foreignObject", "style", "onload", "onclick", "javascript", "linked", "noise"):
        assert bad not in inline
    root = ElementTree.fromstring(inline)
    assert root.get("role") == "img" and root.get("aria-label") == 'says "this" & that'
    assert "url(#lens-clip0)" in inline and 'id="lens-clip0"' in inline
    assert svg.inline(tmp_path / "none.svg", "none", "") is None


def test_a_colour_has_one_class_however_it_is_written():
    written = ("#000", "#000000", "rgb(0, 0, 0)", "rgb(0,0,0)")
    assert {tuple(svg.painted({"fill": colour, "stroke": "none"})) for colour in written} == {("f-000000",)}


def test_each_cell_says_its_column_and_leaves_out_the_note():
    noted = 'A&amp;B <span class="note">(read back)</span>'
    head = f"<thead><tr><th>Part</th><th>{noted}</th><th>Last<br>one</th></tr></thead>"
    rows = '<tr><th>norm</th><td class="n">1 &lt; 2</td><td></td></tr><tr><td colspan="3">none</td></tr>'
    said = rows.replace('"n">', '"n" data-label="A&amp;B">').replace("<td></td>", '<td data-label="Last one"></td>')
    assert labelled(head + rows) == head + said


def test_a_cell_that_differs_is_marked_and_a_mixer_stands_beside_a_mixer():
    def row(model, part, cell, detail):
        return {"model": model, "part": part, "cell": cell, "layers": "", "detail": detail}

    frame = pl.DataFrame(
        [
            row("a", "size", "layers", "12"),
            row("a", "mixer", "attention", "x"),
            row("a", "norm", "layernorm", "eps"),
            row("b", "size", "layers", "12"),
            row("b", "mixer", "attention", "x"),
            row("b", "mixer", "mamba2", "y"),
            row("b", "norm", "layernorm", "eps"),
        ]
    )
    marked = {
        (entry["part"], entry["what"]): entry["differs"]
        for entry in cells_section.view({"cells": frame}, {"models": ["a", "b"]})
    }
    assert marked == {("size", "layers"): False, ("mixer", ""): True, ("norm", ""): False}


def test_what_was_asked_and_not_measured_has_a_section(drawings):
    tables, settings = synthetic.tables(2), synthetic.settings(2)
    assert "Everything that was asked was measured." in Page(build(tables, drawings, settings)).text
    row = {"stage": "patching", "model": "alpha", "asked": f"prompt {synthetic.HOSTILE[0]}", "reason": "unequal <b>"}
    text = Page(build(tables, drawings, settings, refused=[row])).text
    assert "Everything that was asked was measured." not in text
    assert re.search(r"Asked and not measured.*patching.*prompt </script>.*unequal <b>", text)


def test_a_report_without_a_lost_model_begins_by_saying_so(drawings):
    tables, settings = synthetic.tables(2), synthetic.settings(2)
    assert "not whole" not in build(tables, drawings, settings)
    lost = [{"model": "omega", "stage": "parity_gate", "sentence": f"It stopped at {synthetic.HOSTILE[0]}."}]
    html = build(tables, drawings, settings, lost=lost)
    assert html.index("This report is not whole.") < html.index("<h2")
    text = Page(html).text
    assert "omega stopped at parity_gate. It stopped at </script>" in text
