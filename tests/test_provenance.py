"""The code hash follows imports, and nothing but the content of what is imported."""

import os
from pathlib import Path

import pytest
from tokentrail import provenance

FILES = {
    "tokentrail/__init__.py": "",
    "tokentrail/errors.py": "class A(Exception): ...\n",
    "tokentrail/stage.py": "from tokentrail.errors import A\n",
    "tokentrail/measure/__init__.py": '"""Measures."""\n',
    "tokentrail/measure/lens.py": "from tokentrail.forward import frame\nfrom .answers import rank\n",
    "tokentrail/measure/answers.py": "import math\nrank = 1\n",
    "tokentrail/measure/other.py": "x = 1\n",
    "tokentrail/forward/__init__.py": "",
    "tokentrail/forward/frame.py": "def f():\n    import tokentrail.forward.cells.norm as n\n    return n\n",
    "tokentrail/forward/cells/__init__.py": "from . import rope\n",
    "tokentrail/forward/cells/norm.py": "from ...errors import A\n",
    "tokentrail/forward/cells/rope.py": "",
    "tokentrail/by_hand.py": "x = 1\n",
    "tokentrail/charts/__init__.py": "",
    "tokentrail/charts/lens.py": 'TABLES: tuple[str, ...] = ("lens", "parity")\nCAPTION = "a " "b"\n',
    "scripts/lens.py": (
        "from tokentrail import stage\n"
        "from tokentrail.measure import lens\n"
        'if "snakemake" in globals():\n    stage.run(snakemake)\n'
        'elif __name__ == "__main__":\n    from tokentrail.by_hand import run\n    run()\n'
    ),
}


@pytest.fixture
def tree(tmp_path, monkeypatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    of_modules = (provenance.parsed, provenance.module_hash, provenance.table_hash)
    for cached in (provenance.imported, provenance.module_file, provenance.file_hash, *of_modules):
        cached.cache_clear()


def hash_of(tree: Path, also=(), table=None) -> str:
    forget()
    return provenance.code_hash(tree / "scripts" / "lens.py", also, table)


FOLLOWED = [
    "scripts/lens.py",
    "tokentrail/__init__.py",
    "tokentrail/errors.py",
    "tokentrail/stage.py",
    "tokentrail/measure/__init__.py",
    "tokentrail/measure/lens.py",
    "tokentrail/measure/answers.py",
    "tokentrail/forward/frame.py",
    "tokentrail/forward/cells/__init__.py",
    "tokentrail/forward/cells/norm.py",
    "tokentrail/forward/cells/rope.py",
]


@pytest.mark.parametrize("name", FOLLOWED)
def test_an_edit_in_what_is_imported_changes_the_hash(tree, name):
    before = hash_of(tree)
    (tree / name).write_text(FILES[name] + "EDITED = 1\n")
    assert hash_of(tree) != before


@pytest.mark.parametrize("name", ["tokentrail/measure/other.py", "tokentrail/by_hand.py", "tokentrail/charts/lens.py"])
def test_an_edit_elsewhere_does_not(tree, name):
    before = hash_of(tree)
    (tree / name).write_text(FILES[name] + "EDITED = 1\n")
    assert hash_of(tree) == before


def test_a_package_that_finds_its_modules_imports_all_of_them(tree):
    (tree / "tokentrail/forward/cells/__init__.py").write_text(
        "import pkgutil\nCELLS = pkgutil.iter_modules(__path__)\n"
    )
    before = hash_of(tree)
    (tree / "tokentrail/forward/cells/rope.py").write_text("EDITED = 1\n")
    edited = hash_of(tree)
    (tree / "tokentrail/forward/cells/new.py").write_text("")
    assert len({before, edited, hash_of(tree)}) == 3


def test_modules_named_at_run_time_are_given(tree):
    before = hash_of(tree, ["tokentrail.charts.lens"])
    assert before != hash_of(tree)
    (tree / "tokentrail/charts/lens.py").write_text("TABLES = ()\n")
    assert hash_of(tree, ["tokentrail.charts.lens"]) != before


@pytest.mark.parametrize("name", FOLLOWED)
def test_comments_docstrings_and_layout_change_nothing(tree, name):
    before = hash_of(tree)
    text = FILES[name].replace('"""Measures."""', '"""Measures, said otherwise."""')
    text = text.replace("def f():\n", 'def f():\n    """Said."""\n\n')
    (tree / name).write_text(f'# said\n\n{text}\n\nEXTRA = 1\n"""Said below."""\n')
    with_extra = hash_of(tree)
    (tree / name).write_text(f"{text}EXTRA = 1  # said\n")
    assert hash_of(tree) == with_extra != before
    (tree / name).write_text(text)
    assert hash_of(tree) == before


TABLES_FILE = "tokentrail/tables.py"
TABLES_TEXT = """
from tokentrail.errors import A
from tokentrail.measure.answers import rank as least, said
KINDS = "^(a|b)$"
class Base(A):
    model = text("model")
class Lens(Base):
    "What it is."
    kind = text("kind", regex=KINDS)
    rank = count("rank of the target", "rank", min=0)
    p = prob(said, min=least)
class Other(Base):
    rank = count("rank", "rank")
"""


def test_what_a_table_takes_from_other_modules_counts_name_by_name(tree):
    def with_answers(text: str) -> str:
        (tree / "tokentrail/measure/other_answers.py").write_text(text)
        return hash_with(tree, "measure.answers", "measure.other_answers")

    before = with_answers("rank = 1\nsaid = 'said'\n")
    assert with_answers("rank = 1\nsaid = 'said otherwise'\nnew = 1\n") == before
    assert with_answers("rank = 2\nsaid = 'said'\n") != before


def test_an_import_for_type_checkers_does_not_count(tree):
    def with_import(test: str) -> tuple[str, str]:
        (tree / "tokentrail/errors.py").write_text(f"if {test}:\n    from tokentrail.measure import other\n")
        first = hash_of(tree)
        (tree / "tokentrail/measure/other.py").write_text("EDITED = 1\n")
        return first, hash_of(tree)

    first, second = with_import("TYPE_CHECKING")
    assert first == second
    (tree / "tokentrail/measure/other.py").write_text(FILES["tokentrail/measure/other.py"])
    first, second = with_import("True")
    assert first != second


def hash_with(tree: Path, *change: str) -> str:
    (tree / TABLES_FILE).write_text(TABLES_TEXT.replace(*change) if change else TABLES_TEXT)
    return hash_of(tree, table="tokentrail.tables:Lens")


@pytest.mark.parametrize(
    "change",
    [
        ("rank of the target", "place of the target"),
        ('text("kind", ', 'text("kind, one of two", '),
        ("What it is.", "What else it is."),
        ('count("rank", "rank")', 'count("rank", "rank", min=1)'),
        ("class Other(Base):", "class New(Base):\n    x = 1\nclass Other(Base):"),
    ],
)
def test_what_a_table_is_not_checked_by_leaves_its_hash(tree, change):
    assert change[0] in TABLES_TEXT
    assert hash_with(tree, *change) == hash_with(tree)


@pytest.mark.parametrize(
    "change",
    [
        ("min=0", "min=1"),
        ('"rank", min', '"place", min'),
        ("(a|b)", "(a|b|c)"),
        ('model = text("model")', 'model = text("model", min_length=1)'),
        ('    rank = count("rank of the target", "rank", min=0)\n', ""),
    ],
)
def test_what_a_table_is_checked_by_changes_its_hash(tree, change):
    assert change[0] in TABLES_TEXT
    assert hash_with(tree, *change) != hash_with(tree)


def test_touching_and_moving_do_not_matter(tree, tmp_path_factory, monkeypatch):
    before = hash_of(tree)
    os.utime(tree / "tokentrail" / "measure" / "lens.py", (1, 1))
    assert hash_of(tree) == before
    moved = tmp_path_factory.mktemp("moved") / "here"
    tree.rename(moved)
    monkeypatch.setattr(provenance, "ROOT", moved)
    assert hash_of(moved) == before


def test_constants_are_read_without_running(tree):
    assert provenance.constant(tree / "tokentrail/charts/lens.py", "TABLES") == ("lens", "parity")
    assert provenance.constant(tree / "tokentrail/charts/lens.py", "CAPTION") == "a b"
    assert provenance.constant(tree / "tokentrail/charts/__init__.py", "TABLES") is None


def test_the_real_scripts_depend_on_what_they_run():
    scripts = Path(provenance.__file__).parents[2] / "scripts"
    lens = provenance.closure(provenance.imported(scripts / "lens.py", ""))
    assert {"tokentrail.stages.lens.measure", "tokentrail.forward.cells.attention", "tokentrail.weights.load"} <= lens
    assert not {"tokentrail.config", "tokentrail.by_hand", "tokentrail.stages.residual.measure"} & lens
    rooms = {name.split(".")[2] for name in lens if name.startswith("tokentrail.stages.")}
    assert rooms == {"lens"} and "tokentrail.rooms" not in lens, "no stage runs another's code, or lists them all"
    weights = provenance.closure(provenance.imported(scripts / "weights.py", ""))
    assert not any(name.startswith("tokentrail.forward") for name in weights)
