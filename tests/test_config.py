"""The configuration is checked before anything runs, and a stage sees only what it uses."""

import copy
import json
import re

import pytest
import yaml
from tokentrail import config
from tokentrail.errors import ConfigError
from tokentrail.rooms import stages

RAW = {
    "run": "r",
    "title": "t",
    "models": {
        "a": {"label": "A", "source": {"kind": "hub", "repository": "o/a"}},
        "b": {"label": "B", "source": {"kind": "folder", "path": "models/b"}},
    },
    "prompts": {"p": {"text": "x", "target": " y"}, "q": {"text": "z", "target": " w"}},
    "stages": {
        "lens": {"prompts": ["p"]},
        "name_swaps": {"sets": {"s": {"templates": {"t": "{name} and"}, "names": ["Ann", "Bob"]}}},
    },
}


def changed(change) -> dict:
    raw = copy.deepcopy(RAW)
    change(raw)
    return raw


def one_sentence(error: ConfigError) -> str:
    text = str(error)
    assert "\n" not in text and "pydantic" not in text
    return text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(modles=1), "unknown key modles"),
        (lambda c: c["models"]["a"].update(lable="x"), "unknown key models.a.lable"),
        (lambda c: c["models"]["a"]["source"].update(revison="x"), "unknown key models.a.source.revison"),
        (lambda c: c["models"]["a"]["source"].pop("repository"), "lacks the key models.a.source.repository"),
        (lambda c: c["models"]["a"]["source"].update(kind="s3"), "models.a.source"),
        (lambda c: c["models"]["a"]["source"].update(sha256={"f": "xyz"}), "models.a.source.sha256.f"),
        (lambda c: c["models"].clear(), "models is"),
        (lambda c: c["models"].update({"../x": c["models"]["a"]}), "models.../x"),
        (lambda c: c.update(run="a/b"), 'run is "a/b"'),
        (lambda c: c.pop("prompts"), "lacks the key prompts"),
        (lambda c: c["prompts"]["p"].update(text=""), 'prompts.p.text is ""'),
        (lambda c: c["prompts"]["p"].update(target=3), "prompts.p.target is 3"),
        (lambda c: c["stages"]["lens"].update(prompts=["nobody"]), "nobody"),
        (lambda c: c["stages"].update(parity={"tolerance": -1}), "stages.parity.tolerance is -1"),
        (lambda c: c["stages"]["name_swaps"]["sets"]["s"]["names"].append("Ann"), "listed twice"),
        (lambda c: c["stages"]["name_swaps"]["sets"]["s"]["templates"].update(t="no place"), "{name} exactly once"),
    ],
)
def test_mistakes_are_one_sentence_that_names_the_key(change, words):
    with pytest.raises(ConfigError) as caught:
        config.parse(changed(change))
    assert words in one_sentence(caught.value)


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ({"ablations": {"references": ["nobody"]}}, "stages.ablations.references names 'nobody'"),
        ({"ablations": {"resample_from": {"p": "nobody"}}}, "stages.ablations.resample_from names 'nobody'"),
        ({"ablations": {"operations": ["resample"]}}, "resample_from does not say from which prompt 'p'"),
        ({"ablations": {"operations": ["erase"]}}, "stages.ablations.operations.0"),
        ({"patching": {"pairs": [{"prompt": "p", "source": "nobody"}]}}, "stages.patching.pairs names 'nobody'"),
        ({"patching": {"sites": ["logits"]}}, "stages.patching.sites.0"),
        ({"filler": {"fillers": {"f": "x"}}}, "stages.filler: fillers need a head, a tail and a target"),
        (
            {"filler": {"fillers": {"f": "x"}, "head": "Ann came.", "tail": "I saw", "target": " Bob"}},
            "the target ' Bob' does not stand in the head",
        ),
        ({"filler": {"repeats": [-1]}}, "stages.filler.repeats.0 is -1"),
    ],
)
def test_mistakes_in_the_interventions_are_named(stages, words):
    with pytest.raises(ConfigError) as caught:
        config.parse(changed(lambda c: c["stages"].update(stages)))
    assert words in one_sentence(caught.value)


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ({"cache": {"prompts": ["nobody"]}}, "stages.cache.prompts names 'nobody'"),
        ({"cache": {"steps": 0}}, "stages.cache.steps is 0"),
        ({"cache": {"pieces": [3, 0]}}, "stages.cache.pieces.1 is 0"),
        ({"timing": {"rounds": 0}}, "stages.timing.rounds is 0"),
        ({"timing": {"decode_contexts": [0]}}, "stages.timing.decode_contexts.0 is 0"),
        ({"timing": {"batches": [-1]}}, "stages.timing.batches.0 is -1"),
        ({"timing": {"peers": ["flash"]}}, "stages.timing.peers.0"),
        ({"timing": {"threads": 0}}, "stages.timing.threads is 0"),
        ({"cost": {"price_per_hour": 0}}, "stages.cost.price_per_hour is 0"),
        ({"cost": {"occupancy": [1.5]}}, "stages.cost.occupancy.0 is 1.5"),
    ],
)
def test_mistakes_in_cache_timing_and_cost_are_named(stages, words):
    with pytest.raises(ConfigError) as caught:
        config.parse(changed(lambda c: c["stages"].update(stages)))
    assert words in one_sentence(caught.value)


LEVELS = {"none": "", "some": "Some text. "}


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ({"merges": {"words": ["France", ""]}}, 'stages.merges.words.1 is ""'),
        ({"merges": {"words": ["a" * 201]}}, "at most 200 characters"),
        ({"merges": {"words": ["a\ud800b"]}}, 'stages.merges.words.0 is "a\\ud800b"'),
        ({"geometry": {"pairs": [["a"]]}}, "stages.geometry.pairs.0"),
        ({"geometry": {"analogies": {"x": {"plus": []}}}}, "stages.geometry.analogies.x.plus"),
        ({"geometry": {"analogies": {"x": {"plus": [" a"], "minus": [" a"]}}}}, "' a' is both added and subtracted"),
        ({"geometry": {"random": 1}}, "stages.geometry.random is 1"),
        ({"positions": {"pairs": [[3, 5]]}}, "the pair [3, 5] has its key after its query"),
        ({"positions": {"prompts": ["nobody"]}}, "stages.positions.prompts names 'nobody'"),
        ({"mlp": {"prompts": ["nobody"]}}, "stages.mlp.prompts names 'nobody'"),
        ({"distribution": {"decoding": {"temperatures": [0]}}}, "stages.distribution.decoding.temperatures.0 is 0"),
        ({"distribution": {"decoding": {"top_p": [1.5]}}}, "stages.distribution.decoding.top_p.0 is 1.5"),
        (
            {"distribution": {"experiments": {"e": {"template": "a", "target": " b", "factors": {"f": LEVELS}}}}},
            "the template must hold {f} exactly once",
        ),
        (
            {"distribution": {"experiments": {"e": {"template": "{f}", "target": " b", "factors": {"f": {"a": "x"}}}}}},
            "the factor 'f' has fewer than two levels",
        ),
        ({"arithmetic": {"payloads": {"p": {"parameters": 1, "bits": 0, "group": 64}}}}, "payloads.p.bits is 0"),
        ({"arithmetic": {"rows": [0]}}, "stages.arithmetic.rows.0 is 0"),
    ],
)
def test_mistakes_in_what_is_taken_apart_are_named(stages, words):
    with pytest.raises(ConfigError) as caught:
        config.parse(changed(lambda c: c["stages"].update(stages)))
    assert words in one_sentence(caught.value)


@pytest.mark.parametrize(
    ("quantization", "words"),
    [
        ({"prompt": "nobody"}, "stages.quantization.prompt names 'nobody'"),
        ({"models": ["nobody"]}, "stages.quantization.models names 'nobody'"),
        ({"errors": ["q4"]}, "stages.quantization: errors names 'q4', which is not under schemes"),
        (
            {"schemes": {"float32": {"bits": 4, "group_size": 64}}},
            "schemes holds 'float32', the name of an unquantized",
        ),
        ({"schemes": {"q": {"bits": 1, "group_size": 64}}}, "stages.quantization.schemes.q.bits is 1"),
        ({"schemes": {"q": {"bits": 4, "group_size": "row"}}}, "stages.quantization.schemes.q.group_size"),
        ({"schemes": {"q": {"bits": 4}}}, "lacks the key stages.quantization.schemes.q.group_size"),
        ({"schemes": {"q": {"bits": 4, "group_size": 8, "weights": ["norm"]}}}, "schemes.q.weights.0"),
        ({"schemes": {"q": {"bits": 4, "group_size": 8, "outliers": 0.5}}}, "schemes.q.outliers is 0.5"),
    ],
)
def test_mistakes_in_quantization_are_named(quantization, words):
    with pytest.raises(ConfigError) as caught:
        config.parse(changed(lambda c: c["stages"].update(quantization=quantization)))
    assert words in one_sentence(caught.value)


def test_each_stage_of_quantization_sees_its_own_schemes():
    schemes = {"a": {"bits": 4, "group_size": 32, "packed": True}, "b": {"bits": 3, "group_size": 32}}
    parsed = config.parse(changed(lambda c: c["stages"].update(quantization={"schemes": schemes, "errors": ["b"]})))
    seen = {
        stage: set(config.settings(parsed, f"quantization_{stage}", "a")["schemes"])
        for stage in ("quality", "timing", "error")
    }
    assert seen == {"quality": {"a", "b"}, "timing": {"a"}, "error": {"b"}}
    assert set(config.settings(parsed, "quantization_quality", "a")["prompts"]) == {"p"}


def test_a_model_that_is_not_to_be_quantized_has_no_schemes():
    schemes = {"q": {"bits": 4, "group_size": 32, "packed": True}}

    def change(raw):
        raw["stages"]["quantization"] = {"schemes": schemes, "errors": ["q"], "models": ["b"]}

    parsed = config.parse(changed(change))
    for stage in ("quality", "timing", "error"):
        seen = {model: set(config.settings(parsed, f"quantization_{stage}", model)["schemes"]) for model in "ab"}
        assert seen == {"a": set(), "b": {"q"}}


def test_braces_of_a_template_must_be_those_of_factors():
    experiment = {"template": "{f} {other}", "target": " b", "factors": {"f": LEVELS}}
    with pytest.raises(ConfigError, match=r"holds \{other\}, which is no factor"):
        config.parse(changed(lambda c: c["stages"].update(distribution={"experiments": {"e": experiment}})))


def test_every_stage_has_settings_of_plain_data():
    parsed = config.parse(RAW)
    of_stages = [config.settings(parsed, stage, "a") for stage in stages()]
    for settings in [*of_stages, config.chart_settings(parsed), config.report_settings(parsed)]:
        assert json.loads(json.dumps(settings)) == settings, "snakemake compares plain data only"


def test_settings_hold_only_what_the_stage_uses():
    parsed = config.parse(RAW)
    assert set(config.settings(parsed, "lens", "a")["prompts"]) == {"p"}
    other = config.parse(changed(lambda c: c["prompts"]["q"].update(text="other")))
    for stage in ("lens", "name_swaps", "weights", "census"):
        assert config.settings(parsed, stage, "a") == config.settings(other, stage, "a")
    assert config.settings(parsed, "parity", "a") != config.settings(other, "parity", "a")


def test_unknown_stage():
    with pytest.raises(ConfigError, match="no stage called 'lenses'"):
        config.settings(config.parse(RAW), "lenses", "a")


def test_reading_a_file(tmp_path):
    path = tmp_path / "config.yaml"
    with pytest.raises(ConfigError, match="--config"):
        config.load(path)
    path.write_text("run: [")
    with pytest.raises(ConfigError, match="not valid YAML"):
        config.load(path)
    path.write_text("- a\n")
    with pytest.raises(ConfigError, match="mapping"):
        config.load(path)


def test_every_key_is_described_and_optional_ones_have_defaults():
    schema = config.Config.model_json_schema()
    for name, part in (schema["$defs"] | {"Config": schema}).items():
        for key, entry in part.get("properties", {}).items():
            described = entry | schema["$defs"].get(entry.get("$ref", "").rpartition("/")[2], {})
            assert described.get("description"), f"{name}.{key}"
            assert key in part.get("required", []) or "default" in entry, f"{name}.{key}"


# --- what YAML makes of text ---

WRITTEN = {
    "no": "no, off and false without quotes as false: put the word in quotes",
    "Off": "no, off and false without quotes as false: put the word in quotes",
    "Yes": "yes, on and true without quotes as true: put the word in quotes",
    "on": "yes, on and true without quotes as true: put the word in quotes",
    "1998": "as a number, here 1998: put them in quotes",
    "1.50": "as a number, here 1.5: put them in quotes",
    "12:30": "as a number, here 750: put them in quotes",
    "017": "as a number, here 15: put them in quotes",
    ".inf": "as a number, here inf: put them in quotes",
    "1998-05-01": "a date without quotes as one, here 1998-05-01: put it in quotes",
    "1998-05-01 10:00:00": "a date without quotes as one, here 1998-05-01 10:00:00: put it in quotes",
    "~": "~ and null as nothing: write the text, in quotes",
}
"""What is written without quotes, and what the sentence says of it."""
PLACES = {
    "prompts.p.target is ": "prompts: {p: {text: x, target: %s}}",
    "prompts has the key ": "prompts: {%s: {text: x, target: y}}",
    "title is ": "title: %s",
    "models.a.source.revision is ": "models: {a: {label: A, source: {kind: hub, repository: o/a, revision: %s}}}",
    "models.a.bos is ": "models: {a: {label: A, bos: %s, source: {kind: hub, repository: o/a}}}",
    "models.a.config has the key ": "models: {a: {label: A, config: {%s: 1}, source: {kind: hub, repository: o/a}}}",
    "models has the key ": "models: {%s: {label: A, source: {kind: hub, repository: o/a}}}",
    "stages has the key ": "stages: {%s: 1}",
    "stages.lens.prompts.0 is ": "stages: {lens: {prompts: [%s]}}",
    "stages.lens has the key ": "stages: {lens: {%s: [p]}}",
    "stages.name_swaps.sets.s.names.1 is ": (
        "stages: {name_swaps: {sets: {s: {templates: {t: '{name} gave'}, names: [Ann, %s]}}}}"
    ),
    "stages.name_swaps.sets.s.templates has the key ": (
        "stages: {name_swaps: {sets: {s: {templates: {%s: '{name} gave'}, names: [Ann]}}}}"
    ),
    "stages.distribution.experiments.e.factors.f has the key ": (
        "stages: {distribution: {experiments: {e: {template: 'a {f}', target: b, factors: {f: {x: y, %s: z}}}}}}"
    ),
    "stages.ablations.resample_from has the key ": "stages: {ablations: {resample_from: {%s: p}}}",
    "stages.ablations.resample_from.p is ": "stages: {ablations: {resample_from: {p: %s}}}",
    "ledgers.0 is ": "ledgers: [%s]",
}
"""Places where text stands in the configuration: how the sentence begins, and YAML with a gap for the text."""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("written", WRITTEN)
def test_text_that_yaml_reads_as_something_else_is_to_be_quoted(place, written):
    changes = yaml.safe_load(PLACES[place] % written)
    with pytest.raises(ConfigError) as caught:
        config.parse(RAW | changes)
    sentence = one_sentence(caught.value)
    assert sentence.startswith(place) and WRITTEN[written] in sentence
    quoted = yaml.safe_load(PLACES[place] % f"'{written}'")
    try:
        config.parse(RAW | quoted)
    except ConfigError as error:  # a name of another form, or one that is not defined
        assert "quotes" not in str(error)


def test_an_exponent_that_yaml_reads_as_text_is_to_be_written_out():
    with pytest.raises(ConfigError, match=r'top_k is "1e3", but .* write the number out'):
        config.parse(RAW | {"stages": yaml.safe_load("{next_token: {top_k: 1e3}}")})


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_no_setting_is_infinite(value):
    with pytest.raises(ConfigError, match=r"stages\.parity\.tolerance is "):
        config.parse(RAW | {"stages": {"parity": {"tolerance": value}}})


@pytest.mark.parametrize("path", ["run-{v2}", "a {x} b/c", "{}", "{{v}}"])
def test_a_path_with_braces_is_refused_by_its_key(path):
    folder = {"label": "A", "source": {"kind": "folder", "path": path}}
    places = {
        "models.a.source.path": {"models": {"a": folder}},
        "stages.quantization.passages.p": {"stages": {"quantization": {"passages": {"p": path}}}},
        "ledgers.0": {"ledgers": [path]},
    }
    for key, changes in places.items():
        with pytest.raises(ConfigError, match=re.escape(f"{key}: {path} has braces in it")):
            config.parse(RAW | changes)
    config.parse(RAW | {"lock_file": path})  # no input of a rule


@pytest.mark.parametrize("content", ["\ufeff%s", "%s"])
def test_a_file_with_a_byte_order_mark_and_other_line_ends_is_read(tmp_path, content):
    path = tmp_path / "mine.yaml"
    text = yaml.safe_dump(RAW).replace("\n", "\r\n")
    path.write_text(content % text, encoding="utf-8", newline="")
    assert config.load(path) == config.parse(RAW)


def test_a_file_in_another_encoding_is_named(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_bytes("title: \u00e4".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"mine\.yaml is no text in UTF-8; save it as such"):
        config.load(path)
