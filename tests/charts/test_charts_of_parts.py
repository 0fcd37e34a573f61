"""The charts of the interventions: what they pick, what they mark, and what they say of what is not drawn."""

import json

import polars as pl
import pytest
import synthetic_tables as synthetic
from test_charts import draw, spec_of
from tokentrail.charts import colour, maps, save, select
from tokentrail.charts.filler_sweep import ticks
from tokentrail.charts.looks import looks
from tokentrail.charts.patching import told_outside
from tokentrail.charts.quantization_curve import LINE, MARKS, with_sides


def titles(name: str, models: int, tables=None) -> str:
    spec = draw(name, models, tables).to_dict() if tables else spec_of(name, models)

    def found(value) -> list:
        if isinstance(value, list):
            return [text for part in value for text in found(part)]
        if not isinstance(value, dict):
            return []
        own = [value["title"]] if isinstance(value.get("title"), dict) else []
        return own + [text for part in value.values() for text in found(part)]

    return json.dumps(found(spec), ensure_ascii=False)


def test_a_hybrid_has_panels_that_others_lack():
    assert "Left in the state" not in titles("long_range", 1)
    assert "Left in the state" in titles("long_range", 2)
    assert "The Mamba2 state" not in titles("patching", 1)
    assert "The Mamba2 state" in titles("patching", 2)
    assert "attention layers are shaded" not in titles("ablations", 1)
    assert "attention layers are shaded" in titles("ablations", 2)
    assert "from this layer on" in titles("ablations", 2)
    assert "Mamba2 heads" in titles("heads", 2)


def test_each_model_has_shades_of_its_own_colour():
    svg, repeats = save.encode_svg(spec_of("long_range", 2)), synthetic.tables(2)["long_range"]["repeats"].n_unique()
    for look in looks(synthetic.settings(2)).values():
        assert all(shade in svg for shade in colour.shades(look.colour, repeats))


def test_lengths_without_positions_are_named():
    assert "has no positions for 378 tokens" in titles("filler_sweep", 4)
    assert "has no positions" not in titles("filler_sweep", 2)


def test_values_outside_the_shades_are_told():
    assert "outside the shades" in titles("patching", 1)
    rows = pl.DataFrame({"recovered": [0.2, 1.3, -1.7]})
    assert told_outside(rows) == "2 squares lie outside the shades, at −1.70 to 1.30"
    assert told_outside(rows.head(2)) == "1 square lies outside the shades, at 1.30"
    assert told_outside(rows.head(1)) == ""


def test_the_head_that_looks_at_the_target_most_is_picked():
    def row(layer, head, key, weight, mixer="attention"):
        return {
            "layer": layer,
            "head": head,
            "mixer": mixer,
            "query_position": 3,
            "key_position": key,
            "weight": weight,
        }

    rows = pl.DataFrame(
        [
            row(0, 0, 0, 0.9),
            row(0, 0, 2, 0.05),
            row(1, 1, 2, 0.4),
            row(2, 0, 1, 0.8),
            row(2, 1, 3, 0.95),
            row(3, 0, 2, -0.7, "mamba2"),
            row(3, 1, 2, 0.6, "mamba2"),
        ]
    )
    at_target = {row["mixer"]: row for row in select.looking(rows, [2]).to_dicts()}
    assert (at_target["attention"]["layer"], at_target["attention"]["head"]) == (1, 1)
    assert (at_target["mamba2"]["head"], at_target["mamba2"]["weight"]) == (0, 0.7)
    elsewhere = {row["mixer"]: row for row in select.looking(rows, []).to_dicts()}
    assert (elsewhere["attention"]["layer"], elsewhere["attention"]["weight"]) == (2, 0.8)


def test_the_target_is_found_in_the_text_and_not_at_its_end():
    tokens = pl.DataFrame({"position": [0, 1, 2, 3], "token_id": [5, 7, 5, 7]})
    target = pl.DataFrame({"token_id": [7, 9], "is_target": [True, False]})
    assert select.target_positions(target, tokens) == [1]
    assert select.target_positions(target.clear(), tokens) == []


def test_the_first_prompt_is_each_models_own():
    frame = pl.DataFrame({"model": ["a", "a", "b"], "prompt": ["p", "q", "q"]})
    assert select.first_prompt(frame).rows() == [("a", "p"), ("b", "q")]


@pytest.mark.parametrize(
    ("distances", "shown"), [([13, 100, 361, 1405], [13, 100, 361, 1405]), ([13, 14, 1400], [13, 1400]), ([0], [0])]
)
def test_distances_too_close_to_be_read_have_one_label(distances, shown):
    assert ticks(distances, distances[-1] / max(distances[0], 1)) == shown


def test_far_is_lighter_than_near():
    assert colour.shades("#12336b", 1) == ["#12336b"]
    contrasts = [colour.contrast(shade, colour.PAPER) for shade in colour.shades("#12336b", 4)]
    assert contrasts == sorted(contrasts, reverse=True) and contrasts[0] > 2 * contrasts[-1]
    assert contrasts[-1] == pytest.approx(colour.MARK_CONTRAST, abs=0.1), "the farthest still stands out"


def test_long_prompts_are_numbered_and_not_spelled():
    tokens = pl.DataFrame({"position": range(100), "token": [" word"] * 100})
    assert maps.shown_tokens(tokens)["shown"].to_list()[:2] == ["0", "5"]
    assert maps.shown_tokens(tokens.head(3))["shown"].to_list() == ["·word"] * 3


@pytest.mark.parametrize("name", ["ablations", "heads", "patching", "attribution", "mixing", "long_range"])
def test_a_model_without_rows_is_left_out(name):
    tables = synthetic.tables(2)
    module_tables = {
        table: frame.filter(pl.col("model") == "beta") if table not in ("tokens", "next_token") else frame
        for table, frame in tables.items()
    }
    assert "Alpha" not in json.dumps(draw(name, 2, module_tables).to_dict()["vconcat"])


@pytest.mark.parametrize(
    ("moved", "below"),
    [
        ([1.0, 0.9], [False, True]),
        ([1.0, 0.01], [False, False]),
        ([0.9, 1.0, 0.001], [False, True, False]),
        ([1], [False]),
    ],
)
def test_names_that_would_meet_stand_on_two_sides(moved, below):
    placed = with_sides(pl.DataFrame({"moved": moved}, schema={"moved": pl.Float64}), (1e-3, 10.0), 12 * LINE)
    assert placed["moved"].to_list() == sorted(moved, reverse=True)
    assert placed["below"].to_list() == below


@pytest.mark.parametrize("name", ["lens", "sink", "residual", "parity_layers", "mlp"])
def test_models_of_different_depths_share_one_axis_of_layers(name):
    """A shallow model is not squeezed into the first layers of a deep one."""
    told = json.dumps(spec_of(name, 4))
    assert "share of the layers passed" in told
    assert '"title": "layer"' not in told


def test_a_key_shows_no_dashes_where_dashes_mean_something_else():
    spec = spec_of("quantization_sweeps", 4)
    key = json.dumps(spec["vconcat"][0])
    assert '"field": "model"' in key and "strokeDash" not in key
    assert "strokeDash" in json.dumps(spec_of("lens", 4)["vconcat"][0])


def test_the_key_of_marks_names_those_that_are_drawn():
    tables = synthetic.tables(4)
    rows = tables["quantization"]
    for kind in ("packed", "simulated"):
        some = tables | {"quantization": rows.filter(pl.col("execution") != kind)}
        key, whole = (
            json.dumps(spec["vconcat"][0] | {"datasets": spec["datasets"]})
            for spec in (draw("quantization_curve", 4, some).to_dict(), spec_of("quantization_curve", 4))
        )
        label = MARKS[kind][1]
        assert label in whole and label not in key


def test_without_a_passage_the_prompt_has_the_only_line():
    """What the key shows is drawn, and what is drawn is in the key."""
    tables = synthetic.tables(4)
    tables["quantization"] = tables["quantization"].filter(pl.col("passage") == "")
    dashed = '"mark": {"type": "line", "strokeDash": [4, 3], "strokeWidth": 1.2}'
    without, with_one = (
        json.dumps(draw("quantization_sweeps", 4, tables).to_dict()),
        json.dumps(spec_of("quantization_sweeps", 4)),
    )
    for said, in_words in ((without, "mean over positions"), (without, dashed)):
        assert in_words not in said and in_words in with_one
    assert "last position" in without


@pytest.mark.parametrize("name", ["quantization_sweeps", "quantization_parts", "quantization_curve"])
def test_what_lies_below_the_scale_is_said_at_its_end(name):
    tables = synthetic.tables(4)
    measured = ["kl", "mean_kl", "mean_kl_low", "mean_kl_high"]
    few = pl.col("bits").is_in([4, 8])
    vanished = [pl.when(few).then(0.0).otherwise(pl.col(column)).alias(column) for column in measured]
    less = tables | {"quantization": tables["quantization"].with_columns(vanished)}
    assert "≤ 0.000001" in save.encode_svg(draw(name, 4, less).to_dict())
    assert "≤" not in save.encode_svg(spec_of(name, 4))
