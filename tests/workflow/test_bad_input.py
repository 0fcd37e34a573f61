"""A user's mistake is one clear sentence and exit code 1, and harms nothing else."""

import json
import shutil
import subprocess
import sys

import pytest
from tokentrail import tables

pytestmark = pytest.mark.slow

MISTAKES = {
    "unknown key": (lambda c: c.update(modles={}), "unknown key modles"),
    "unknown key of a stage": (lambda c: c["stages"]["next_token"].update(topk=3), "stages.next_token.topk"),
    "wrong type": (lambda c: c["stages"]["next_token"].update(top_k="many"), 'stages.next_token.top_k is "many"'),
    "missing key": (lambda c: c.pop("title"), "lacks the key title"),
    "empty prompt": (lambda c: c["prompts"]["king"].update(text=""), "prompts.king.text"),
    "empty target": (lambda c: c["prompts"]["king"].update(target=""), "prompts.king.target"),
    "prompt that is not there": (lambda c: c["stages"]["lens"].update(prompts=["queen"]), "stages.lens.prompts"),
    "reference that is not there": (
        lambda c: c["stages"]["ablations"].update(references=["queen"]),
        "stages.ablations.references names 'queen', which is not under `prompts`",
    ),
    "pair that is not there": (
        lambda c: c["stages"]["patching"].update(pairs=[{"prompt": "king", "source": "queen"}]),
        "stages.patching.pairs names 'queen', which is not under `prompts`",
    ),
    "target that is not in the head": (
        lambda c: c["stages"]["filler"].update(target=" bishop"),
        "stages.filler: the target ' bishop' does not stand in the head",
    ),
    "no round": (lambda c: c["stages"]["timing"].update(rounds=0), "stages.timing.rounds is 0, but"),
    "more bits than a byte": (
        lambda c: c["stages"]["quantization"]["schemes"]["q4"].update(bits=9),
        "stages.quantization.schemes.q4.bits is 9, but",
    ),
    "a part that no model has": (
        lambda c: c["stages"]["quantization"]["schemes"]["q4"].update(weights=["norms"]),
        "stages.quantization.schemes.q4.weights.0",
    ),
    "errors of a scheme that is not there": (
        lambda c: c["stages"]["quantization"].update(errors=["q5"]),
        "stages.quantization: errors names 'q5', which is not under schemes",
    ),
    "memory below the least": (lambda c: c.update(memory_mb=8), "memory_mb is 8, but"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_configuration(done, mistake):
    change, sentence = MISTAKES[mistake]
    before = done.tables(timed=True)
    done.configure(change)
    status, output = done.snakemake()
    assert status == 1
    assert sentence in output
    assert "Traceback" not in output
    assert done.tables(timed=True) == before


def safetensors(folder):
    return next(folder.glob("*.safetensors"))


def edit_json(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def poison(folder):
    from safetensors.torch import load_file, save_file

    tensors = load_file(safetensors(folder))
    next(iter(tensors.values())).view(-1)[3] = float("nan")
    save_file(tensors, safetensors(folder), metadata={"format": "pt"})


def cut(folder):
    path = safetensors(folder)
    path.write_bytes(path.read_bytes()[:-1000])


DAMAGE = {
    "unknown-family": (lambda f: edit_json(f / "config.json", model_type="perceiver"), "perceiver"),
    "no-weights": (lambda f: safetensors(f).unlink(), "safetensors"),
    "no-config": (lambda f: (f / "config.json").unlink(), "config.json"),
    "no-tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "tokenizer.json"),
    "truncated": (cut, "model.safetensors"),
    "nan": (poison, "NaN"),
}


def test_models(fresh, undisturbed):
    """Every kind of broken model in one run, beside one that is sound."""
    for name, (damage, _) in DAMAGE.items():
        folder = fresh.path / "models" / name
        shutil.copytree(fresh.path / "models" / "alpha", folder)
        damage(folder)

    def change(config):
        del config["models"]["beta"]
        for name in DAMAGE:
            config["models"][name] = {"label": name, "source": {"kind": "folder", "path": f"models/{name}"}}
        pinned = {"kind": "folder", "path": "models/beta", "sha256": {"config.json": "0" * 64}}
        config["models"]["wrong-hash"] = {"label": "wrong-hash", "source": pinned}
        gone = {"kind": "folder", "path": "models/nowhere"}
        config["models"]["no-folder"] = {"label": "no-folder", "source": gone}

    fresh.configure(change)
    gates = [f"results/tiny/{name}/parity.passed" for name in [*DAMAGE, "wrong-hash", "no-folder"]]
    sound = [f"results/tiny/alpha/{table}.parquet" for table in ("census", "tokens", "lens", "name_swaps_summary")]
    status, output = fresh.snakemake(*gates, *sound)
    assert status == 1
    assert "Traceback" not in output

    wanted = {name: words for name, (_, words) in DAMAGE.items()}
    wanted |= {"wrong-hash": "0" * 64, "no-folder": "models/nowhere"}
    for name, words in wanted.items():
        sentences = {line.strip() for line in output.splitlines() if f" of {name}: " in line}
        assert any(words in sentence for sentence in sentences), (name, sentences, output)
        left = {path.name for path in (fresh.results / name).rglob("*") if path.is_file()}
        assert "parity.passed" not in left and "lens.parquet" not in left
        assert not [file for file in left if file.endswith(".part")]

    made, expected = fresh.tables(), undisturbed.tables()
    for path in sound:
        name = path.removeprefix("results/tiny/")
        assert made[name] == expected[name], f"{name} of the sound model differs between two runs"


def test_prompts_that_the_model_cannot_read(done):
    """GPT-2 ends at its last learned position, and says so in a row; the rotary model reads on."""
    long = {"text": "the king " * 200 + "the", "target": " queen"}
    done.configure(lambda c: c["prompts"].update(long=long))
    paths = {model: f"results/tiny/{model}/parity.parquet" for model in ("alpha", "beta")}
    done.run(*paths.values())
    (row,) = tables.refused("parity", done.path / paths["beta"])
    assert row["asked"] == "prompt long" and "256" in row["reason"]
    assert "long" not in set(tables.read("parity", done.path / paths["beta"])["prompt"])
    assert tables.refused("parity", done.path / paths["alpha"]) == []
    assert "long" in set(tables.read("parity", done.path / paths["alpha"])["prompt"])


def test_prompts_of_unequal_length(done):
    """Values of another prompt can only stand in the places of this one if there are as many."""

    def change(config):
        config["stages"]["ablations"]["resample_from"] = {"king": "short"}
        config["stages"]["patching"]["pairs"] = [{"prompt": "king", "source": "short"}]

    done.configure(change)
    paths = {stage: f"results/tiny/alpha/{stage}.parquet" for stage in ("ablations", "patching")}
    done.run(*paths.values())
    for stage, path in paths.items():
        (row,) = tables.refused(stage, done.path / path)
        assert all(word in row["reason"] for word in ("king", "7", "short", "4")), row
    assert "resample" not in set(tables.read("ablations", done.path / paths["ablations"])["operation"])


def test_groups_that_do_not_divide_and_a_passage_that_is_not_there(done):
    def change(config):
        quantization = config["stages"]["quantization"]
        quantization["schemes"]["q4"].update(group_size=20, rest="refuse")
        quantization["passages"] = {"king": "passages/nowhere.txt"}

    done.configure(change)
    stages = ("quantization_quality", "quantization_error")
    status, output = done.snakemake(*(f"results/tiny/alpha/{stage}.parquet" for stage in stages))
    assert status == 1
    assert "Traceback" not in output
    lines = {line.strip() for line in output.splitlines()}
    assert any("of alpha: passage king cannot be read from passages/nowhere.txt" in line for line in lines), output
    assert any("of alpha: group_size 20 does not divide a line of 48 weights" in line for line in lines), output
    assert not any((done.results / "alpha" / f"{stage}.parquet").exists() for stage in stages)


def test_what_cannot_be_packed_is_named_beside_its_simulated_row(undisturbed):
    path = undisturbed.results / "alpha" / "quantization.parquet"
    packed = tables.read("quantization", path).filter(execution="packed")
    ran, refused = packed.filter(status="ok"), packed.filter(status="skipped")
    assert set(ran["scheme"]) == {"q8-packed"} and ran["decode_ms"].null_count() == 0
    assert set(refused["scheme"]) == {"q4-packed"} and "32 does not divide 48" in refused["reason"][0]


def test_memory_too_small_for_one_row(done):
    """By hand, because the gate would take its time over a prompt this long."""

    def change(config):
        config["memory_mb"] = 16
        config["prompts"]["long"] = {"text": "the king " * 3000 + "the", "target": " queen"}
        config["stages"]["ablations"] = {"prompts": ["long"], "operations": ["zero"]}

    done.configure(change)
    environment = done.environment | {"PYTHONPATH": str(done.path / "workflow")}
    command = [sys.executable, "scripts/ablations.py", "--model", "alpha", "--output", "by_hand.parquet"]
    result = subprocess.run(command, cwd=done.path, env=environment, capture_output=True, text=True)
    assert result.returncode == 1
    assert "ablations of alpha: memory_mb is 16, but one row of 6002 tokens needs" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (done.path / "by_hand.parquet").exists()


def test_a_file_name_with_braces_is_named_before_anything_runs(done):
    (done.path / "models" / "alpha" / "extra{v2}.json").write_text("{}")
    status, output = done.snakemake("--dry-run")
    assert status == 1 and "Traceback" not in output
    assert "models/alpha/extra{v2}.json of models.alpha has braces in its name" in output


def test_a_query_that_no_table_answers_is_named_before_anything_runs(done):
    ledger = done.path / "config" / "ledger.csv"
    header = "id,stage,model,input,quantity,measured,value,tolerance_kind,tolerance"
    done.configure(lambda config: config.update(ledgers=["config/ledger.csv"]))
    for query, words in {
        "SELECT share FROM next_token": 'unable to find column "share"; valid columns: ["model", "prompt", "rank"',
        "SELECT * FROM read_csv('config/ledger.csv')": "opens a file with read_csv; select from the tables of the run",
    }.items():
        ledger.write_text(f"{header}\nmine,next_token,alpha,king,share,{query},1,exact,\n")
        status, output = done.snakemake("--dry-run")
        assert status == 1 and "Traceback" not in output
        assert "config/ledger.csv, line 2 has a query that " in output and words in output


def test_odd_paths_and_files_of_another_editor(fresh):
    """Spaces, quotes, brackets and letters beyond ASCII in every path; a byte order mark and other line ends."""
    odd = fresh.path / "mödels [of 'mine'] & \"yours\""
    odd.mkdir()
    (fresh.path / "models" / "alpha").rename(odd / "alpha b")
    (odd / "the pass.txt").write_bytes("\ufeffThe king gave the crown to the queen.\r\n".encode())
    (odd / "a ledger.csv").write_bytes(
        "\ufeffid,stage,model,input,quantity,measured,value,tolerance_kind,tolerance\r\n".encode()
    )

    def change(config):
        del config["models"]["beta"]
        config["models"]["alpha"]["source"]["path"] = f"{odd.name}/alpha b"
        config["stages"]["quantization"]["passages"] = {"king": f"{odd.name}/the pass.txt"}
        config |= {"lock_file": f"{odd.name}/a lock.json", "ledgers": [f"{odd.name}/a ledger.csv"]}

    fresh.configure(change)
    path = fresh.path / "config" / "config.yaml"
    path.write_bytes("\ufeff".encode() + path.read_bytes().replace(b"\n", b"\r\n"))
    fresh.run("results/tiny/alpha/quantization_quality.parquet")
    assert "Nothing to be done" in fresh.run("--dry-run", "results/tiny/alpha/quantization_quality.parquet")
    assert (odd / "a lock.json").is_file()


def test_a_model_that_fails_leaves_a_report_of_the_others(done):
    """Said at its head and on the console, with exit status 1; mended, the same command makes it whole again."""
    path, report = safetensors(done.path / "models" / "beta"), done.results / "report.html"
    content, whole = path.read_bytes(), report.read_bytes()
    cut(path.parent)
    status, output = done.snakemake()
    assert status == 1
    assert (
        "beta stopped at weights. Its log ends with: model.safetensors of folder:models/beta@ has the SHA-256" in output
    )
    assert "is now a report on alpha alone" in output
    text = report.read_text()
    assert text.index("This report is not whole.") < text.index("<h2")
    assert "<code>beta</code> stopped at <code>weights</code>" in text
    assert "Beta" not in (done.results / "charts" / "lens.json").read_text()
    path.write_bytes(content)
    done.run()
    assert report.read_bytes().count(b"not whole") == 0 and len(report.read_bytes()) >= 0.9 * len(whole)
    assert "Beta" in (done.results / "charts" / "lens.json").read_text()


def test_a_configuration_with_only_the_required_keys_gets_its_report(fresh):
    def least(config):
        for key in set(config) - {"run", "title", "models", "prompts"}:
            del config[key]
        config["models"] = {"alpha": {key: config["models"]["alpha"][key] for key in ("label", "source")}}
        config["prompts"] = {"king": config["prompts"]["king"]}

    fresh.configure(least)
    fresh.run()
    assert "not whole" not in (fresh.results / "report.html").read_text()
