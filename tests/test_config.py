"""The configuration is checked before anything runs, and a stage sees only what it uses."""

import copy
import json

import pytest
from tokentrail import config
from tokentrail.errors import ConfigError
from tokentrail.tables.lists import TABLES

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
    for stage in [*TABLES, "parity_gate", "charts", "report"]:
        settings = config.settings(parsed, stage, None if stage in ("charts", "report") else "a")
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
