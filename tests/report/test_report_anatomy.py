"""Sentences on what models are made of: what is there, what is not, and what follows from it."""

import polars as pl
import pytest
import synthetic_tables as synthetic
from test_report_sections import plain
from tokentrail.charts import select
from tokentrail.stages.arithmetic import section as work
from tokentrail.stages.block import section as block
from tokentrail.stages.distribution import section as spread
from tokentrail.stages.geometry import section as geometry
from tokentrail.stages.lens import section as lens_section
from tokentrail.stages.merges import section as merges
from tokentrail.stages.mlp import section as mlp
from tokentrail.stages.positions import section as positions
from tokentrail.stages.sink import section as sink

TABLES, SETTINGS = synthetic.tables(4), synthetic.settings(4)


def of(table: str, model: str) -> pl.DataFrame:
    return TABLES[table].filter(pl.col("model") == model)


# tokens


def test_words_with_and_without_their_space():
    entry = merges.view(TABLES, SETTINGS)[0]
    assert plain(entry["spaces"]) == (
        "A space before a word belongs to the word: king is the token 0 and ·king is the tokens 0 and 1."
    )
    assert plain(entry["ratio"]) == "The 6 words of 3 prompts are 18 tokens, 3.00 for each word."
    king, spaced, hangul = entry["words"]
    assert (king["merges"], king["tokens"], spaced["tokens"]) == (3, ["king"], ["·k", "ing"])
    assert hangul["tokens"] == ["<0xEC>", "<0x95>", "<0x88>"], "bytes that are no whole character"


def test_a_tokenizer_without_merges_is_left_out_of_the_view():
    assert [entry["index"] for entry in merges.view(TABLES, SETTINGS)] == [0, 1, 2]


def test_the_word_that_is_drawn_is_the_longest_that_can_be():
    frame = TABLES["merges"]
    assert select.replayed_word(frame, 14) == "king"
    assert select.replayed_word(frame, 2) == " king"
    assert select.replayed_word(frame.filter(pl.col("kind") == "prompt"), 14) is None
    in_two_pieces = frame.with_columns(piece=pl.when(pl.col("prompt") == "king").then(1).otherwise(pl.col("piece")))
    assert select.replayed_word(in_two_pieces, 14) == " king"


# the token table


def test_rows_and_their_neighbours():
    entry = geometry.view(TABLES, SETTINGS)[1]
    says = [plain(said) for said in entry["says"]]
    assert says[0].startswith("A row of the token table has length 2.50 on average, from 1.00 for </script>")
    assert says[1].startswith("Nearest to ·king are ")
    assert says[1].endswith("(0.50); to a random token its cosine is 0.10 on average, give or take 0.04.")
    assert "Cosines of pairs: ·king and ·queen 0.60." in says
    assert says[-1].endswith("has no row of its own: ·kingdom·come.")
    (analogy,) = entry["analogies"]
    assert analogy["sum"] == " king + woman − man" and analogy["without"] != analogy["all"]


# positions


def test_each_way_in_which_position_enters():
    said = [plain(entry["said"]) for entry in positions.view(TABLES, SETTINGS)]
    assert said[0] == (
        "Queries and keys are rotated by their positions. One random pair of them, −11.4 unrotated, scores 1.25 at "
        "positions 17 and 5, 12 positions apart, 1.25 at positions 112 and 100, 12 positions apart and −10.6 at "
        "positions 17 and 16, 1 position apart. Scores at equal distance differ by at most 1.0 × 10−5, the rounding of "
        "float32."
    )
    assert said[1] == said[3] == plain(positions.NEITHER)
    assert said[2] == (
        "A table with a row for each of 40 positions is added to the token rows. Its rows have length "
        f"{sum(9 / (1 + n) for n in range(40)) / 40:.3g} on average; the longest, 9.00, is that of position 0. At the "
        "last position of alice, 3, the position’s row (2.25) is the longer of the two; the token’s is 2.00."
    )


def test_a_model_that_was_not_read_is_not_said_to_have_no_positions():
    assert positions.view(synthetic.empty(), SETTINGS) == []


# one layer


def test_what_the_norms_of_a_layer_do():
    entries = block.view(TABLES, SETTINGS)
    assert [(entry["index"], entry["mixer"]) for entry in entries] == [
        (0, "attention"),
        (1, "attention"),
        (1, "Mamba2"),
        (2, "attention"),
        (3, "Mamba2"),
    ]
    norm = (
        "The norm before the {} takes the root mean square from 0.400 to 0.400, the mean from −0.100 to −0.100 and the "
        "standard deviation from 0.300 to 0.300, its own weights included."
    )
    assert plain(entries[0]["said"]) == " ".join(norm.format(name) for name in ("mixer", "FFN"))


def test_inside_the_ffn():
    assert plain(mlp.view(TABLES, SETTINGS)[1]["said"]) == (
        "At the last position, between 10.0% (layer 0) and 16.0% (layer 3) of the channels are within 0.01 of zero "
        "(mean over 3 prompts). At the last position, between 60.0% (layer 3) and 90.0% (layer 0) of the channels are "
        "below zero (mean over 3 prompts). Over all positions, the largest value is 8.00 (layer 3, position 0 of "
        "alice) and the smallest −0.800 (layer 3, position 0 of alice)."
    )
    one_layer = of("mlp", "beta").filter((pl.col("layer") == 0) & (pl.col("prompt") == "alice"))
    assert plain(mlp.share(one_layer, "negative_fraction", "below zero")) == (
        "At the last position, 90.0% of the channels of its one layer are below zero."
    )


# experiments and decoding


def experiment(**bits: float) -> pl.DataFrame:
    rows = [
        {"levels": f"example: {levels[0]}, wording: {levels[1]}", "entropy_bits": value}
        for levels, value in bits.items()
    ]
    return select.with_factors(pl.DataFrame(rows))


def test_what_a_factor_does_in_every_combination():
    says = [plain(said) for said in spread.factors(experiment(ax=6.0, ay=5.0, bx=2.0, by=4.0))]
    assert says[0] == (
        "example: a has 5.50 and b has 3.00 bits of entropy on average, 2.50 bits fewer. It narrows the distribution "
        "in both combinations of the others, by 1.00 to 4.00 bits."
    )
    assert says[1] == (
        "wording: x has 4.00 and y has 4.50 bits of entropy on average, 0.50 bits more. It narrows the distribution in "
        "1 of 2 combinations and widens it in 1."
    )
    assert "It widens the distribution in both" in plain(spread.factors(experiment(ax=1.0, ay=1.0, bx=2.0, by=4.0))[0])
    still = plain(spread.factors(experiment(ax=1.0, ay=1.0, bx=1.001, by=4.0))[0])
    assert still.endswith(
        "It widens the distribution in 1 of 2 combinations of the others, by 3.00 bits; one combination it leaves as "
        "wide as it was."
    ), "what rounds to nothing is no change"
    assert "changes the width in none of 2" in plain(spread.factors(experiment(ax=1, ay=1, bx=1.001, by=1.0))[0])
    three = spread.factors(experiment(ax=1.0, bx=2.0, cx=3.0))
    assert plain(three[0]) == "example: a has 1.00, b has 2.00 and c has 3.00 bits of entropy on average."


def test_levels_are_told_apart_by_their_factor():
    frame = select.with_factors(pl.DataFrame({"levels": ["a: x, b: y", "a: z, b: y"]}))
    assert frame["factor a"].to_list() == ["x", "z"] and frame["factor b"].to_list() == ["y", "y"]


def test_decoding_and_continuations():
    entry = spread.view(TABLES, SETTINGS)[0]
    assert plain(entry["kept"]) == (
        "No such rule can change which token is first, and temperature 2 and top-k 5 change it on none of 3 prompts."
    )
    assert [row["decoding"] for row in entry["rules"]] == ["as computed", "temperature 2", "top-k 5"]
    first = entry["continued"][0]
    assert first["tokens"] == 3 and first["text"] == " Alice" + "".join(synthetic.HOSTILE[1:3])
    other = of("distribution", "alpha").with_columns(
        top1_token=pl.when(pl.col("decoding") == "top-k 5").then(pl.lit("x")).otherwise(pl.col("top1_token"))
    )
    assert "is another under some rule for 3 of 3 prompts" in plain(spread.kept(other.filter(experiment="")))


def test_the_table_of_the_next_token_reads_the_prompts_own_row():
    assert select.as_computed(of("distribution", "alpha"))["entropy_bits"].to_list() == [1.5, 1.5, 1.5]


# sizes


def test_sizes_and_work():
    sized = work.view(TABLES, SETTINGS)
    said = [plain(entry["said"]) for entry in sized["models"]]
    assert said[0].startswith(
        "Its shapes make 32 parameters, exactly those that the checkpoint stores. For one sequence"
    )
    assert (
        "it keeps 128 KiB after 8 tokens and 15.6 MiB after 1,000 tokens. A pass takes 11.6 MFLOP for 8 tokens"
        in said[0]
    )
    assert said[3].startswith("Its shapes make 32 parameters, exactly")
    assert "1.00 MiB after 8 tokens and 1.00 MiB after 1,000 tokens: the state has one size" in said[3]
    assert [row["subject"] for row in sized["hypothetical"]] == ["big <b>"], "once, not once a model"
    assert plain(work.agrees(of("arithmetic", "alpha"), 31)) == (
        "Its shapes make 32 parameters, but the checkpoint stores 31."
    )
    assert plain(work.agrees(of("arithmetic", "alpha"), 0)) == "Its shapes make 32 parameters."


# completed stages


def test_where_the_target_stood_higher_on_the_way():
    def row(prompt, layer, rank):
        same = {"model": "m", "variant": "as_trained", "site": "resid_post", "target_probability": 0.1}
        return {"prompt": prompt, "layer": layer, "target_rank": rank} | same

    rows = pl.DataFrame(
        [row("p", 0, 9), row("p", 1, 1), row("p", 2, 4), row("q", 0, 9), row("q", 1, 7), row("q", 2, 0)]
    )
    assert plain(lens_section.on_the_way(rows)) == (
        "Where the target does not end at rank 0, it stands higher after some layer before the last in the one case: "
        "p, rank 1 after layer 1 and 4 at the end."
    )
    assert plain(lens_section.on_the_way(rows.filter(pl.col("prompt") == "q"))) == (
        "The target ends at rank 0 on the one prompt, so it stood higher on none of them before."
    ), "a target that ends first cannot have stood higher: that it did not is no finding"
    assert lens_section.on_the_way(rows.filter(pl.col("layer") == 0)) == "", "one layer has nothing before the last"
    assert lens_section.on_the_way(rows.clear()) == ""


def test_what_comes_first_without_the_first_token():
    assert plain(sink.first_kept(of("sink", "alpha"))) == (
        "The most likely token stays the same in none of 3 cases after hiding it, in all 3 cases after dropping its "
        "value, in none of 3 cases after giving its weight to the others and in all 3 cases after putting another "
        "token there."
    )
    assert sink.first_kept(of("sink", "delta")) == ""


@pytest.mark.parametrize("section", [merges, geometry, positions, block, mlp, spread])
def test_views_of_nothing(section):
    assert section.view(synthetic.empty(), SETTINGS) == []
