"""Sentences from numbers: one and many, ties, a target that is not first, a model that fails."""

import polars as pl
import pytest
from tokentrail.rooms import schemas
from tokentrail.stages.lens import section as lens_section
from tokentrail.stages.name_swaps import section as name_swaps_section
from tokentrail.stages.next_token import section as next_token_section
from tokentrail.stages.parity import section as parity_section
from tokentrail.stages.residual import section as residual_section
from tokentrail.wording import words


def plain(markup) -> str:
    return markup.striptags().replace("\u00a0", " ")


def next_token(*rows):
    return pl.DataFrame(
        [{"rank": rank, "token": token, "probability": p, "is_target": target} for rank, token, p, target in rows]
    )


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [(0, " Alice", 0.8149, True), (1, " the", 0.0426, False)],
            "It continues with ·Alice with probability 0.815, the token that was expected; next is ·the at 0.043.",
        ),
        (
            [(0, " Alice", 0.4, True), (1, " the", 0.4, False)],
            "It continues with ·Alice with probability 0.400, the token that was expected; ·the is exactly as "
            "probable.",
        ),
        ([(0, " x", 1.0, True)], "It continues with ·x with probability 1, the token that was expected."),
        (
            [(0, ".", 0.35, False), (1375, " world", 5e-6, True)],
            "It continues with . with probability 0.350, not with the expected ·world, which has rank 1,375 "
            "(0 is the first) and a probability below 0.001.",
        ),
        (
            [(0, ".", 0.35, False), (1, " world", 0.35, True)],
            "It continues with . with probability 0.350, and the expected ·world is exactly as probable.",
        ),
        (
            [(0, ".", 0.99999, False), (2, " so", 0.000004, True)],
            "It continues with . with a probability above 0.999, not with the expected ·so, which has rank 2 "
            "(0 is the first) and a probability below 0.001.",
        ),
    ],
)
def test_the_answer(rows, said):
    assert plain(next_token_section.answer(next_token(*rows))) == said


def test_no_answer_is_no_sentence():
    assert next_token_section.answer(next_token((0, "a", 0.5, True)).clear()) == ""


def test_tokens_are_escaped():
    said = next_token_section.answer(next_token((0, "</script><b>", 0.5, True)))
    assert "&lt;/script&gt;&lt;b&gt;" in said
    assert "<b>" not in said


def lens(ranks, tokens="abcdefgh"):
    return pl.DataFrame(
        [
            {"model": "m", "prompt": "p", "variant": "as_trained", "layer": layer, "site": "resid_post"}
            | {"target_rank": rank, "top1_token": tokens[layer], "target_probability": 0.6}
            for layer, rank in enumerate(ranks)
        ]
    )


NO_PATCHING = schemas()["patching"].create_empty()


def patched(*recovered):
    """What the last token's stream recovers, by the layer that it enters, beside another position that recovers all."""
    return pl.DataFrame(
        [
            {"prompt": "p", "source_prompt": "q", "site": "resid_pre", "layer": layer, "position": position}
            | {"recovered": value if position else 1.0}
            for layer, value in enumerate(recovered)
            for position in (0, 9)
        ]
    )


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        (
            [9, 3, 0],
            "By the logit lens alone, the target first leads after layer 2, the last one (layers are counted from 0); "
            "one layer earlier, b leads.",
        ),
        (
            [9, 0, 0],
            "By the logit lens alone, the target first leads after layer 1 (counted from 0; the last is 2), with "
            "probability 0.600 there; one layer earlier, a leads.",
        ),
        (
            [0, 5, 0],
            "By the logit lens alone, the target first leads after layer 0 (counted from 0; the last is 2), with "
            "probability 0.600 there. It falls behind again after layer 1.",
        ),
        (
            [0, 5, 4],
            "By the logit lens alone, the target first leads after layer 0 (counted from 0; the last is 2), with "
            "probability 0.600 there. It falls behind again after 2 later layers.",
        ),
        (
            [5000, 93, 1375],
            "Read after each of its 3 layers by the logit lens, the target never leads; it comes closest "
            "after layer 1 (counted from 0), at rank 93.",
        ),
        (
            [0],
            "By the logit lens alone, the target first leads after layer 0, the last one (layers are counted from 0).",
        ),
    ],
)
def test_the_lens(ranks, said):
    assert plain(lens_section.lens(lens(ranks), "p", NO_PATCHING)) == said


def test_the_lens_reads_whole_layers_of_the_model_as_trained():
    other = lens([0, 0]).with_columns(variant=pl.lit("attention_off"))
    half = lens([0, 0]).with_columns(site=pl.lit("resid_mid"))
    assert lens_section.lens_facts(pl.concat([other, half, lens([7, 0])]))["first"] == 1
    assert lens_section.lens(lens([1]).clear(), "p", NO_PATCHING) == ""


def parity(*differences, agrees=True):
    return pl.DataFrame(
        [
            {"prompt": f"p{i}", "max_abs_logit_diff": d, "tolerance": 1e-3, "top1_agrees": agrees}
            | {"max_abs_error_ours": 9.5e-5, "max_abs_error_reference": 5e-5, "max_abs_logit": 30.39}
            for i, d in enumerate(differences)
        ]
    )


def test_parity_that_passes():
    assert plain(parity_section.parity(parity(1e-5, 1.02e-4))) == (
        "Over 2 positions of 2 prompts, the largest difference in any logit between this workflow and transformers is "
        "1.0 × 10−4, below the tolerance of 1.0 × 10−3."
    )
    assert plain(parity_section.parity(parity(0.0))).startswith("Over 1 position of 1 prompt, the largest difference")


def test_parity_that_fails_says_so():
    said = plain(parity_section.parity(parity(0.5)))
    assert said.endswith(
        "above the tolerance of 1.0 × 10−3: this model fails the gate, and no number of it should be used."
    )


def test_agreement_on_the_first_token():
    assert parity_section.agreement(parity(1e-5)) == "Both name the same first token at every position."
    said = plain(parity_section.agreement(parity(1e-5, 1e-5, agrees=False)))
    assert said == "They name different first tokens at 2 of 2 positions."


def test_the_error_budget():
    assert plain(parity_section.budget(parity(1e-5))) == (
        "Against the same pass in float64, float32 rounding alone moves this workflow by up to 9.5 × 10−5 and "
        "transformers by up to 5.0 × 10−5; the largest logit is 30.4."
    )


def test_how_many_prompts_are_answered_as_expected():
    rows = pl.DataFrame(
        {"prompt": ["a", "a", "b", "b", "c"], "rank": [0, 1, 0, 7, 0], "is_target": [True, False, False, True, True]}
    )
    assert next_token_section.hits(rows) == "The expected token comes first after 2 of the 3 prompts."
    assert (
        next_token_section.hits(rows.filter(pl.col("prompt") != "b"))
        == "The expected token comes first after both prompts."
    )
    assert (
        next_token_section.hits(rows.filter(pl.col("rank") > 0))
        == "The expected token comes first after none of the 2 prompts."
    )
    assert next_token_section.hits(rows.head(2)) == ""


def swapped(sets):
    rows = [
        {"set": name, "template": f"t{t}", "name": f"n{i}", "rank": 0 if i < firsts else 3}
        for name, names, templates, firsts in sets
        for t in range(templates)
        for i in range(names)
    ]
    summary = [
        {"set": name, "template": "all", "quantity": "probability", "mean": 0.56, "low": 0.38, "high": 0.71}
        | {"level": 0.95}
        for name, *_ in sets
    ]
    return pl.DataFrame(rows), pl.DataFrame(summary)


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (
            [("five", 5, 1, 5)],
            "in all 5 cases with 5 names in one sentence (mean probability 0.560, 95% interval over names 0.380 to "
            "0.710).",
        ),
        ([("one", 1, 1, 1)], "in the one case with 1 name in one sentence."),
        ([("one", 1, 1, 0)], "not in the one case with 1 name in one sentence."),
        (
            [("two", 2, 1, 2), ("none", 4, 2, 0)],
            "in both cases with 2 names in one sentence (mean probability 0.560, 95% interval over names 0.380 to "
            "0.710) and in none of 8 cases with 4 names in 2 sentences (mean probability 0.560, 95% interval over "
            "names 0.380 to 0.710).",
        ),
    ],
)
def test_the_name_swaps(sets, said):
    opening = "With other names in its place, the name in the sentence is the first answer "
    assert plain(name_swaps_section.story(*swapped(sets))) == opening + said


def test_the_sentence_in_which_names_fail_is_told():
    rows, summary = swapped([("broad", 4, 2, 4)])
    rows = rows.with_columns(rank=pl.when(pl.col("template") == "t1").then(pl.lit(2)).otherwise("rank"))
    said = plain(name_swaps_section.story(rows, summary))
    assert "in 4 of 8 cases" in said
    assert "0.710; least often in the sentence t1, in none of 4 cases)" in said


def test_growth():
    def stream(*lengths):
        return pl.DataFrame([{"site": "resid_post", "layer": i, "l2_norm": x} for i, x in enumerate(lengths)])

    assert residual_section.growth(stream(33.8, 902.0)) == (
        "The stream's length goes from 33.8 after layer 0 to 902 after layer 1, where it is largest."
    )
    assert residual_section.growth(stream(33.8, 902.0, 50.0)).endswith("; it is largest after layer 1, at 902.")
    assert residual_section.growth(stream(3.0)) == "The stream's length after its one layer is 3.00."


def test_words():
    assert words.counted(1, "prompt") == "1\u00a0prompt"
    assert words.counted(1410, "token") == "1,410\u00a0tokens"
    assert words.in_words(1) == "One" and words.in_words(12) == "12"
    assert words.listed(["a"]) == "a" and words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.power(0.0) == "0"
