"""Each published quantity against tables that were made up: which cell it is, and what happens without it."""

from __future__ import annotations

import math
import re

import polars as pl
import pytest
from synthetic_run import GRANITE, QWEN3, figure, run, tables
from tokentrail.stages.reproduction import figures, judge
from tokentrail.stages.reproduction.ledger import NO_MODEL
from tokentrail.stages.reproduction.run import NotRun
from tokentrail.stages.reproduction.verdict import in_unit

ALICE = {"input": "alice"}
CASES = [
    # text
    ("token_count", {"input": "alice"}, 5),
    ("token_count", {"input": " abc"}, 2),
    ("token_count", {"input": "filler-1"}, 105),
    ("token_ids", {"input": " abc"}, [11, 12]),
    ("token_id", {"input": " abc"}, [11, 12]),
    ("token_split", {"input": " abc"}, [" ab", "c"]),
    ("token_split", {"input": "alice"}, ["In", " the", " Alice", " back", " to"]),
    ("token_at_position_4", ALICE, " to"),
    ("last_position", ALICE, 4),
    ("position_of_name_token", ALICE, 2),
    ("positions_between_name_and_last_token", ALICE | {"model": NO_MODEL}, 2),
    ("ablation_input_token_count", ALICE | {"model": NO_MODEL}, 5),
    ("fits_position_table", {"input": "filler-16"}, False),
    ("fits_position_table", {"input": "filler-16", "model": QWEN3}, True),
    ("filler_repeat_counts", {"model": NO_MODEL}, [0, 1, 16]),
    ("tokens_per_filler_paragraph", {"model": NO_MODEL}, 87),
    ("inserted_token_count", {"model": NO_MODEL}, 1392),
    ("total_token_count_equal_in_three_tokenizers", {"model": NO_MODEL}, True),
    ("utf8_byte_count", {"input": " abc"}, 7),
    ("leading_space_marker", {}, "Ġ"),
    ("bpe_initial_symbols", {"input": " abc"}, ["Ġ", "a", "b", "c"]),
    ("bpe_merge_step_count", {"input": " abc"}, 2),
    ("bpe_merge_rank_step_2", {"input": " abc"}, 9),
    ("bpe_merge_pair_step_1", {"input": " abc"}, ["a", "b"]),
    ("bpe_symbols_after_step_1", {"input": " abc"}, ["Ġ", "ab", "c"]),
    ("ranked_merges_left_after_last_step", {"input": " abc"}, 0),
    # answers
    ("top2_token", {}, " now"),
    ("top2_probability", {}, 0.3),
    ("top1_token", {"input": "mirabel", "stage": "name_swap"}, " M"),
    ("greedy_token", {}, " the"),
    ("target_probability", {}, 0.1),
    ("target_probability_final", {}, 0.1),
    ("target_probability", {"input": "filler-1", "stage": "filler", "model": QWEN3}, 0.94),
    ("target_probability_all_attention_off", {"input": "filler-1", "stage": "filler", "model": QWEN3}, 0.85),
    ("target_probability_all_attention_off", ALICE, 0.7),
    ("target_rank_zero_based", {}, 4),
    ("target_rank_one_based", {}, 5),
    ("probability_of_the", {}, 0.5),
    ("negative_log_likelihood_of_paris", {}, 2.3026),
    ("logit_gap_the_minus_paris", {}, 1.0),
    ("probability_ratio_the_over_paris", {}, math.e),
    ("logit_gap_at_temperature_2", {}, 0.5),
    ("odds_at_temperature_2", {}, math.exp(0.5)),
    ("top5_probability_sum", {}, 0.75),
    ("top5_probability_sum_percent", {"unit": "percent"}, 75),
    ("probability_outside_top5", {}, 0.25),
    ("entropy_bits", {}, 3.0),
    ("two_to_the_entropy", {}, 8.0),
    ("tokens_covering_90_percent", {}, 1500),
    ("uniform_entropy_bits", {}, math.log2(50257)),
    ("tokens_outside_top5", {}, 50252),
    ("tokens_other_than_target", {}, 50256),
    ("logits_other_than_a_pair", {}, 50255),
    ("max_abs_logit_diff_vs_transformers", ALICE, 3e-5),
    ("names_tried", {"model": NO_MODEL}, 2),
    ("cases_total", {"model": NO_MODEL}, 6),
    ("count_target_top1", {}, 1),
    ("count_target_top1", {"model": NO_MODEL}, 3),
    ("top1_token_all_attention_off", ALICE, " Alice"),
    ("top1_token_all_attention_off", {"input": "filler-1", "stage": "filler", "model": QWEN3}, "top1"),
    ("min_target_probability", {"model": QWEN3}, 0.5),
    ("target_is_top1_all_attention_off", {"input": "filler-1", "model": QWEN3}, False),
    ("target_is_top1_all_attention_off", {"input": "filler-0", "model": QWEN3}, True),
    ("smallest_token_count_where_target_lost_all_attention_off", {"model": QWEN3}, 105),
    # depth
    ("first_layer_target_top1", ALICE, 9),
    ("first_layer_target_top1_all_attention_off", ALICE, 11),
    ("lens_top1_token_layer_1", {}, " a"),
    ("lens_target_rank_zero_based_layer_0", {}, 40),
    ("min_depth_fraction_of_first_target_layer", ALICE, 0.75),
    ("min_lens_target_rank_layers_0_to_1", {}, 1),
    ("lens_best_rank_zero_based", {}, 1),
    ("lens_best_layer", {}, 2),
    ("lens_best_layer_target_probability", {}, 0.4),
    ("best_layer_is_final_layer", {}, False),
    ("target_ever_top1_in_lens", {}, False),
    ("layers_with_lens_rank_one_zero_based", {}, [1, 2]),
    ("residual_norm_after_layer_1", ALICE, 16.0),
    ("max_residual_norm_over_layers", ALICE, 16.0),
    ("norm_mlp_update_block_0", ALICE, 14.0),
    ("rms_before_norm_layer_0", ALICE, 1.0),
    ("rms_after_norm_layer_0", ALICE, math.sqrt(0.75 / (0.75 + 1e-5))),
    ("rms_after_norm_layer_0", ALICE | {"model": QWEN3}, 1 / math.sqrt(1 + 1e-6)),
    ("mean_after_norm_layer_0", ALICE, 0.0),
    ("mean_after_norm_layer_0", ALICE | {"model": QWEN3}, 0.5 / math.sqrt(1 + 1e-6)),
    ("fraction_abs_activation_below_0_01_layer_0", {"unit": "percent"}, 3),
    ("fraction_negative_activation_layer_0", {}, 0.91),
    ("max_activation_layer_0", {}, 3.65),
    ("min_activation_layer_0", {}, -0.17),
    # attention
    ("attention_argmax_token_layer_0_head_1", {}, " France"),
    ("attention_weight_position_0_layer_0_head_1", {}, 0.2),
    ("attention_weight_layer_0_head_0_to_position_3", {}, 0.2),
    ("attention_row_sum_layer_0_head_1", {}, 1.0),
    ("head_with_most_attention_to_france_layer_0", {}, 1),
    ("heads_with_largest_non_self_weight_on_france_layer_0", {}, [1]),
    ("heads_with_argmax_france_layer_0", {}, [1]),
    ("attention_weight_row_sum", ALICE | {"model": GRANITE}, 1.0),
    ("max_attention_weight_above_diagonal", {}, 0.0),
    ("max_abs_weight_above_diagonal_layer_28", ALICE | {"model": GRANITE}, 0.0),
    ("mean_attention_position_0_layer_1", {}, 0.8),
    ("mean_attention_position_0_all_layers", {}, 0.6),
    ("mean_attention_position_0", {"input": "six short prompts"}, 0.8),
    ("max_mean_attention_position_0", {}, 0.8),
    ("layer_of_max_mean_attention_position_0", {}, 1),
    ("kl_nats_mask_position_0", {}, 4.5),
    ("mean_kl_nats_mask_position_0", {"input": "six short prompts"}, 3.0),
    ("min_fraction_of_rows_peaking_on_position_0_layer_27", ALICE | {"model": GRANITE}, 1.0),
    ("state_updates_seen_position_5", ALICE | {"model": GRANITE}, 6),
    ("mamba2_decay_between_zero_and_one", ALICE | {"model": GRANITE}, True),
    ("mixing_table_mamba2_layer", ALICE | {"model": GRANITE, "value": "28"}, 28),
    # parts
    ("single_attention_switches_tried", ALICE, 4),
    ("count_target_top1_single_attention_off", ALICE, 3),
    ("min_target_probability_single_attention_off", ALICE, 0.01),
    ("layer_of_min_target_probability_single_attention_off", ALICE, 0),
    ("target_probability_attention_layer_3_off", ALICE, 0.4),
    ("top1_token_attention_layer_0_off", ALICE, " t0"),
    ("count_single_attention_off_at_or_above_0_800", ALICE, 2),
    ("min_target_probability_single_attention_off_except_layer_0", ALICE, 0.4),
    ("exception_layer_single_attention_off", ALICE, 0),
    ("top1_token_first_mamba2_layer_off", ALICE | {"model": GRANITE}, " their"),
    ("target_probability_mamba2_from_layer_16_off", ALICE | {"model": GRANITE}, 0.0001),
    ("top1_token_all_mamba2_off", ALICE | {"model": GRANITE}, " *_"),
    ("zeroed_calls_all_mamba2_off", ALICE | {"model": GRANITE}, 28),
    # anatomy
    ("layer_count", {}, 12),
    ("blocks_after_first", {}, 11),
    ("mamba2_layer_count_from_layer_16", {"model": GRANITE}, 14),
    ("layer_kind_layer_27", {"model": GRANITE}, "attention"),
    ("output_projection_tied_to_embedding", {}, True),
    ("logit_divisor", {"model": GRANITE}, 3),
    ("residual_multiplier", {"model": GRANITE}, 0.246),
    ("embedding_multiplier", {"model": GRANITE}, 12),
    ("model_width", {}, 768),
    ("vocab_size", {}, 50257),
    ("query_head_count", {"model": QWEN3}, 16),
    ("total_head_count", {}, 144),
    ("kv_head_count", {"model": QWEN3}, 8),
    ("query_heads_per_kv_head", {"model": QWEN3}, 2),
    ("kv_memory_ratio_vs_full_heads", {"model": QWEN3}, 0.5),
    ("head_dim", {"model": QWEN3}, 128),
    ("head_count_times_head_dim", {}, 768),
    ("attention_scale", {}, 0.125),
    ("ffn_width", {}, 3072),
    ("ffn_activation", {"value": "gelu_new"}, "gelu_new"),
    ("ffn_activation", {"value": "swiglu"}, "gelu"),
    ("norm_kind", {}, "layernorm"),
    ("layer_norm_epsilon", {}, 1e-5),
    ("layer_norm_scale_count", {}, 768),
    ("position_table_rows", {}, 1024),
    ("has_position_table", {"model": QWEN3}, False),
    ("position_embedding_type", {"model": GRANITE}, "nope"),
    ("rope_theta", {"model": QWEN3}, 1e6),
    ("hub_revision", {}, "abc"),
    ("model_safetensors_sha256", {}, "11"),
    ("embedding_and_head_share_data_pointer", {}, True),
    ("shape_input_ids", {}, [1, 4]),
    ("shape_attention_weights", {}, [1, 12, 5, 5]),
    ("embedding_output_shape", {}, [4, 768]),
    ("mlp_wide_shape", {}, [5, 3072]),
    ("attention_weights_shape_per_layer", {}, [12, 5, 5]),
    ("score_grid_shape_per_head", {}, [5, 5]),
    ("value_blend_shape_per_head", {}, [5, 64]),
    ("combined_qkv_width", {}, 2304),
    ("numbers_reindexed_by_head_reshape", {}, 3840),
    ("unembed_input_shape", {}, [1, 768]),
    ("logits_shape", {}, [1, 50257]),
    ("token_table_shape", {}, [50257, 768]),
    ("max_abs_diff_reconstructed_block_0", {}, 2e-7),
    ("position_row_norm_position_17", {}, 3.59),
    ("token_row_norm", {}, 2.52),
    ("position_row_norm_exceeds_token_row_norm", {}, True),
    ("mean_position_row_norm", {}, 3.39),
    ("embedding_row_value_1", {"input": "The"}, -0.02),
    ("rope_score_without_rotation", {"model": NO_MODEL}, 11.796),
    ("rope_score_112_100", {"model": NO_MODEL}, 1.15),
    ("position_gap_17_5", {"model": NO_MODEL}, 12),
    ("abs_difference_score_17_5_vs_112_100", {"model": NO_MODEL}, pytest.approx(0.01)),
    ("cosine_to_france", {"input": " Paris"}, 0.634),
    ("cosine_to_princess", {"input": "king - man + woman"}, 0.605),
    ("cosine_queen_king", {}, 0.657),
    ("nearest_tokens_excluding_inputs", {}, [" queen", " princess"]),
    ("nearest_tokens", {"input": " Paris"}, ["Paris", " France"]),
    ("queen_rank_one_based_excluding_inputs", {}, 1),
    ("queen_rank_zero_based_all_rows", {}, 1),
    ("mean_cosine_to_random_tokens", {"input": " Paris"}, 0.242),
    # sizes
    ("parameter_count", {}, 12893),
    ("twelve_block_parameter_count", {}, 7836),
    ("block_parameter_count", {}, 653),
    ("block_mlp_down_parameter_count", {}, 300),
    ("token_embedding_parameter_count", {}, 5000),
    ("position_embedding_parameter_count", {}, 50),
    ("mlp_weight_and_bias_parameter_count", {}, 6000),
    ("attention_weight_and_bias_parameter_count", {}, 1800),
    ("final_layer_norm_parameter_count", {}, 7),
    ("mlp_plus_embedding_parameter_share", {"unit": "percent"}, 100 * 11000 / 12893),
    ("mlp_over_attention_parameter_ratio", {}, 6000 / 1800),
    ("mlp_operations_one_block", {}, 70),
    ("value_blend_operations", {}, 2),
    ("operations_per_sequence_row", {}, 25786),
    ("fp32_weight_bytes", {}, 4096),
    ("arithmetic_intensity", {"input": "batch 8"}, 16 * 12893 / 4096),
    ("mlp_wide_activation_fp32_mib", {"input": "batch 8, 1000 tokens", "unit": "MiB"}, 93.75),
    ("embedding_rows_fp32_bytes", {}, 15360),
    ("cache_bytes_per_token_fp32", {}, 73728),
    ("cache_bytes_per_token_fp16", {}, 36864),
    ("cache_bytes", {"input": "16-token input"}, 1179648),
    ("cache_mib_fp32", {"input": "batch 8, context 64", "unit": "MiB"}, 36),
    ("cache_bytes_over_per_token_bytes", {"input": "16-token input"}, 16),
    ("cache_bytes_per_token", {"input": "8 KV heads instead of 32", "model": NO_MODEL}, 131072),
    ("cache_gib", {"input": "fp16, 2048 tokens", "model": NO_MODEL, "unit": "GiB"}, 1),
    ("cache_size_ratio", {"model": NO_MODEL}, 0.25),
    ("state_size_ratio_token_18000_vs_18", {"model": GRANITE}, 1),
    ("payload_4_bit_group_64_all_large", {"unit": "KiB"}, 0.5),
    ("ratio_8_bit_all_large_group_64", {}, 4),
    ("four_bit_code_payload", {"model": NO_MODEL, "unit": "GB"}, 3.5),
    ("fp16_scale_payload", {"model": NO_MODEL, "unit": "GB"}, 0.21875),
    ("four_bit_plus_scales_payload", {"model": NO_MODEL, "unit": "GB"}, 3.71875),
    ("fp16_payload", {"model": NO_MODEL, "unit": "GB"}, 14),
    ("fp32_payload", {"model": NO_MODEL, "unit": "GB"}, 28),
    ("fp32_payload", {"unit": "KiB"}, 9216),
    ("fp32_payload", {"unit": "MiB"}, 4 / 1024),
    # decoding
    ("cache_length_after_prefill", {}, 5),
    ("cache_length_step_2", {}, 7),
    ("greedy_token_fed_step_1", {}, " the"),
    ("same_top_id_cached_vs_full_step_2", {}, False),
    ("mean_abs_logit_diff_cached_vs_full_step_2", {}, 4e-5),
    ("max_abs_logit_diff_cached_vs_full", {}, 2e-4),
    ("count_steps_with_same_top_id", {}, 1),
    ("cache_length_growth_per_step", {}, 1),
    ("decode_ms_per_token_p90", {"input": "context 8", "stage": "timing"}, 9.0),
    ("tokens_per_second", {"input": "batch 2, context 64", "stage": "batch"}, 131.0),
    ("prefill_ms_median", {"input": "context 32, repeat run", "stage": "prefill"}, 24.0),
    ("rounds", {"model": NO_MODEL}, 7),
    ("decode_contexts", {"model": NO_MODEL}, [8, 1000]),
    ("batch_sizes", {"model": NO_MODEL}, [2]),
    ("prefill_contexts", {"model": NO_MODEL}, [32]),
    ("batch_table_context", {"model": NO_MODEL}, 64),
    ("torch_version", {"model": NO_MODEL}, "2.13.0"),
    ("device", {"model": NO_MODEL}, "A CPU"),
    ("torch_threads", {"model": NO_MODEL}, "2"),
    ("machine_price_per_hour", {"model": NO_MODEL}, 1.0),
    # quantization, with the choice that a run has by default
    ("kl_nats_fp32_to_quant_4_bit_group_64", {}, 4.0),
    ("top1_token_8_bit_group_64", {}, " the"),
    ("four_bit_group_64_top1_probability", {"unit": "percent"}, 40),
    ("careful_4_bit_top1_token", {}, " the"),
    ("kl_nats_careful_4_bit_group_32", {}, 0.15),
    ("kl_nats_only_mlp_c_fc_4_bit", {}, 0.04),
    ("max_kl_nats_over_twelve_matrix_families", {}, 0.07),
    ("most_sensitive_family", {}, "wte"),
    ("top1_first_changes_between_bits", {}, [6, 4]),
    ("mean_abs_reconstruction_error", {}, 0.0145),
    ("mean_abs_error_over_std", {"unit": "percent"}, 10.3),
    ("first_group_scale", {}, 0.052),
    ("four_bit_code_1", {}, 2),
    ("perplexity_fp32", {}, 119.0),
    ("mean_kl_nats_4_bit_compute_fp32_embeddings_group_32", {}, 0.22),
    ("weight_shape", {}, [768, 3072]),
    ("weight_count", {}, 2359296),
    ("weight_standard_deviation", {}, 0.1412),
    ("max_abs_weight", {}, 4.5),
    ("max_abs_weight_over_std", {}, 32.5),
    ("fraction_beyond_4_sigma", {"unit": "percent"}, 0.126),
    ("weight_value_2", {}, -0.0321),
    # a ledger of one's own
    ("next_token.probability", {"input": "prompt=capital-france; rank=1"}, 0.3),
    ("name_swaps.rank", {"input": "set=five-names; name=Mirabel"}, 2),
]


@pytest.mark.parametrize(("quantity", "about", "expected"), CASES)
def test_a_quantity_is_its_cell(quantity, about, expected):
    asked = figure(quantity, **about)
    found = in_unit(asked, figures.measured(run(), asked))
    wanted = {True: "yes", False: "no"}.get(expected, expected) if isinstance(expected, bool) else expected
    assert found == (pytest.approx(wanted) if isinstance(wanted, float) else wanted)


def test_every_quantity_has_a_case():
    without = [p.pattern for p in figures.FIGURES if not any(p.fullmatch(quantity) for quantity, _, _ in CASES)]
    assert without == []


def test_each_quantity_has_one_meaning():
    for quantity, _, _ in CASES:
        assert len([p for p in figures.FIGURES if p.fullmatch(quantity)]) == 1, quantity


@pytest.mark.parametrize(
    ("table", "column", "quantity", "about"),
    [
        ("next_token", "probability", "top1_probability", {}),
        ("lens", "top1_token", "lens_top1_token_layer_1", {}),
        ("residual", "l2_norm", "residual_norm_after_layer_1", ALICE),
        ("ablations", "target_probability", "target_probability_attention_layer_3_off", ALICE),
        ("filler_sweep", "tokens", "token_count", {"input": "filler-1"}),
        ("attention", "weight_on_first", "mean_attention_position_0_layer_1", {}),
        ("arithmetic", "value", "parameter_count", {}),
        ("cache", "cache_tokens", "cache_length_step_2", {}),
        ("geometry", "cosine", "cosine_to_france", {"input": " Paris"}),
        ("quantization", "kl", "kl_nats_fp32_to_quant_8_bit_group_64", {}),
    ],
)
def test_another_value_in_the_table_is_another_figure(table, column, quantity, about):
    """The figure is published as the made-up run has it; with other values in the table it differs."""
    first = figure(quantity, **about)
    published = str(in_unit(first, figures.measured(run(), first)))
    asked = figure(quantity, value=published, **about)
    same = tables()[table]
    other = pl.col(column) + "x" if same[column].dtype == pl.String else pl.col(column) * 2
    assert judged(asked) == "reproduced"
    assert judged(asked, **{table: same.with_columns(other)}) == "differs"


def judged(asked, **changed):
    return judge.measure(run(**changed), [asked])["status"][0]


@pytest.mark.parametrize(
    ("quantity", "about", "reason"),
    [
        ("top1_token", {"model": "llama"}, "the run has no model llama"),
        ("top1_token", {"input": "unheard"}, "next_token has no row with prompt unheard"),
        ("top1_token", {"model": QWEN3}, "next_token was not measured for qwen3-0.6b-base"),
        ("target_probability", {"input": "filler-16", "stage": "filler"}, "longer than gpt2 has positions"),
        ("min_target_probability", {}, "some inputs of the sweep are longer than gpt2 has positions"),
        ("decode_ms_per_token_median", {"input": "context 1000", "stage": "timing"}, "not timed: it does not fit"),
        ("rope_theta", {}, "gpt2 does not rotate"),
        ("careful_4_bit_top2_token", {}, "keeps the most likely token of a scheme alone"),
        ("kl_nats_fp32_to_quant_4_bit_group_16", {}, "has no scheme of"),
        ("cosine_to_london", {"input": " Paris"}, "' London' is not among the nearest, which are 'Paris', ' France'"),
        ("attention_share", {}, "no stage measures attention_share"),
        ("nothing.here", {}, "the run has no table nothing"),
        ("next_token.probability", {"input": "prompt=capital-france"}, "4 rows with prompt=capital-france; name one"),
        ("next_token.probability", {"input": "prompt"}, "the input must read column=value"),
        ("next_token.size", {"input": "prompt=capital-france; rank=1"}, "next_token has no column size"),
    ],
)
def test_what_was_not_run_says_why(quantity, about, reason):
    with pytest.raises(NotRun, match=re.escape(reason)):
        figures.measured(run(), figure(quantity, **about))
    row = judge.measure(run(), [figure(quantity, **about)]).row(0, named=True)
    assert (row["status"], row["measured"]) == ("not_run", "") and reason in row["note"]


def test_a_run_without_a_table_says_so_for_every_quantity():
    asked = [figure(quantity, **about) for quantity, about, _ in CASES]
    found = judge.measure(type(run())({}, run().specs, {}, {}), asked)
    left = found.filter(pl.col("status") != "not_run")
    assert set(left["quantity"]) <= {quantity for quantity, _, _ in CASES if needs_no_table(quantity)}


def needs_no_table(quantity):
    """What the configuration of a model says, or the quantity's own name."""
    told = (
        "layer",
        "count",
        "head",
        "width",
        "shape",
        "norm_kind",
        "size",
        "multiplier",
        "divisor",
        "position",
        "payload",
    )
    return any(word in quantity for word in told) or quantity in (
        "output_projection_tied_to_embedding", "kv_memory_ratio_vs_full_heads", "query_heads_per_kv_head",
        "attention_scale", "ffn_activation", "rope_theta", "uniform_entropy_bits", "blocks_after_first",
    )  # fmt: skip


def test_the_choice_that_reproduces_most_is_taken_and_named():
    ledger = [
        figure("kl_nats_fp32_to_quant_4_bit_group_64", value="4.8316", tolerance_kind="abs", tolerance=5e-5),
        figure("first_group_scale", value="0.04576", tolerance_kind="abs", tolerance=5e-6),
        figure("kl_nats_fp32_to_quant_8_bit_group_64", value="0.0166", tolerance_kind="abs", tolerance=5e-5),
    ]
    found = judge.measure(run(), ledger)
    assert found["status"].to_list() == ["reproduced", "reproduced", "not_run"]
    told = found["note"][0]
    assert told.startswith("with divisor half_range and grouping input, 2 figures of quantization reproduce")
    assert "(1 with divisor largest_code and grouping input)" in told
