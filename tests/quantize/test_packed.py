"""A packed model against the simulated one of the same codes: exactly, but for the precision of the activations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from math import prod

import pytest
import torch
from packable_models import PACKABLE
from safetensors import safe_open
from safetensors.torch import save_file
from tokentrail.errors import QuantizationError
from tokentrail.forward.cache import new_cache
from tokentrail.forward.frame import forward
from tokentrail.quantize.cells import PackedInt4, packed_linear, refusal
from tokentrail.quantize.packed import FORMAT, as_stored, read_packed, write_packed
from tokentrail.quantize.parts import HEAD, chosen, quantizable, splits
from tokentrail.quantize.payload import matrix_payload, model_payload
from tokentrail.quantize.quantizer import dequantize, quantize
from tokentrail.quantize.scheme import Scheme
from tokentrail.quantize.simulate import Simulation
from torch.utils._python_dispatch import TorchDispatchMode

CPU = torch.device("cpu")
EXACT = {
    "int4": Scheme(4, 32, scales="float32"),
    "int4 with middles": Scheme(4, 32, symmetric=False, scales="float32"),
    "int8": Scheme(8, "channel", scales="float32"),
}
FAST = {name: replace(scheme, scales="bfloat16") for name, scheme in EXACT.items()}
WEIGHTS = (["all"], ["compute"], ["tokens"], ["tokens.input"], ["tokens.output"])
ROUNDING = 2**-9  # half a unit in the last of bfloat16's eight places


def run(pair, scheme, weights, path):
    """Logits (2, 150, vocabulary) of the packed model and of the simulated one; None if the model has no such part."""
    spec = pair.ours().spec
    tensors = chosen(spec, weights)
    if not tensors:
        return None
    write_packed(pair.checkpoint, scheme, tensors, path)
    simulated = Simulation(pair.ours(), pair.checkpoint).apply(scheme, tensors)
    with torch.inference_mode():
        return forward(read_packed(path), pair.ids), forward(simulated, pair.ids)


@pytest.mark.parametrize("scheme", EXACT)
@pytest.mark.parametrize("variant", PACKABLE)
def test_with_float32_activations_packed_and_simulated_agree(packable, tmp_path, variant, scheme):
    for weights in WEIGHTS:
        found = run(packable(variant), EXACT[scheme], weights, tmp_path / "packed.safetensors")
        if found is not None:
            packed, simulated = found
            assert (packed - simulated).abs().max() < 2e-5 * simulated.abs().max()


@pytest.mark.parametrize("scheme", FAST)
@pytest.mark.parametrize(("out", "into"), [(64, 64), (48, 32), (50, 96), (3352, 160), (1, 32)])
def test_with_bfloat16_activations_a_product_is_off_by_the_rounding_of_what_goes_in_and_out(scheme, out, into):
    """Each input and each output is rounded once; the sum between is taken in float32."""
    generator = torch.Generator().manual_seed(out)
    weights, x = torch.randn(out, into, generator=generator), torch.randn(3, 5, into, generator=generator)
    bias = torch.randn(out, generator=generator)
    q = quantize(weights, FAST[scheme])
    stored = as_stored("m", q)
    cell = packed_linear(stored["m.codes"], stored["m.scales"], stored.get("m.middles"), q.scheme, into, bias)
    read = dequantize(q).double()
    expected = x.double() @ read.t() + bias
    # The kernel multiplies by code * scale + middle rounded to bfloat16 too.
    bound = 2.1 * ROUNDING * (x.abs().double() @ read.abs().t()) + 1.1 * ROUNDING * (expected - bias).abs()
    apart = (cell(x) - expected).abs()
    assert cell(x).dtype == torch.float32
    assert (apart <= bound + 1e-6).all()
    assert apart.max() > 1e-6, "nothing was rounded, so this would not see a wrong tolerance"


@pytest.mark.parametrize("scheme", FAST)
@pytest.mark.parametrize("variant", ["gpt2", "qwen3-tied-bias", "granite-nope"])
def test_whole_models_in_bfloat16_stay_near_the_simulated_ones(packable, tmp_path, variant, scheme):
    """The stated tolerance: four times bfloat16's rounding of the logits themselves, on average."""
    packed, simulated = run(packable(variant), FAST[scheme], ["all"], tmp_path / "packed.safetensors")
    assert (packed - simulated).abs().mean() < 4 * ROUNDING * simulated.abs().mean()


@pytest.mark.parametrize("variant", ["gpt2", "granite-biases"])
def test_packed_decode_equals_packed_prefill(packable, tmp_path, variant):
    pair = packable(variant)
    model_path = tmp_path / "packed.safetensors"
    write_packed(pair.checkpoint, EXACT["int4"], chosen(pair.ours().spec, ["all"]), model_path)
    model, ids = read_packed(model_path), pair.ids[:, :9]
    cache = new_cache(model.spec, 2, 9, model.tokens.dtype)
    with torch.inference_mode():
        whole = forward(model, ids)
        steps = torch.cat([forward(model, ids[:, i : i + 1], cache) for i in range(9)], dim=1)
    assert (whole - steps).abs().max() < 1e-4


@pytest.mark.parametrize("variant", PACKABLE)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_file_holds_exactly_the_payload(packable, tmp_path, variant, weights):
    pair, path = packable(variant), tmp_path / "packed.safetensors"
    spec = pair.ours().spec
    tensors = chosen(spec, weights)
    if not tensors:
        assert not spec.tied and weights[0].startswith("tokens.")
        return
    write_packed(pair.checkpoint, FAST["int4"], tensors, path)
    header = 8 + int.from_bytes(path.read_bytes()[:8], "little")
    assert path.stat().st_size - header == model_payload(spec, FAST["int4"], tensors)
    with safe_open(path, "pt") as file:
        names, about = set(file.keys()), file.metadata()
    assert json.loads(about["scheme"])["group_size"] == 32
    assert about["weights_sha256"] == pair.checkpoint.sha256
    assert any(name.startswith(HEAD) for name in names) == (not spec.tied or splits(spec, tensors))


class Made(TorchDispatchMode):
    """Shapes and dtypes of everything that is computed inside the block."""

    def __init__(self):
        super().__init__()
        self.largest: dict[torch.dtype, int] = {}

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        out = function(*arguments, **(options or {}))
        for tensor in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.largest[tensor.dtype] = max(self.largest.get(tensor.dtype, 0), tensor.numel())
        return out


def test_loading_and_running_never_makes_a_matrix_float(packable, tmp_path):
    pair, path = packable("gpt2"), tmp_path / "packed.safetensors"
    spec = pair.ours().spec
    write_packed(pair.checkpoint, FAST["int4"], chosen(spec, ["all"]), path)
    smallest = min(prod(shape) for shape in quantizable(spec).values())
    with Made() as made, torch.inference_mode():
        forward(read_packed(path), pair.ids[:1, :2])
    floats = [size for dtype, size in made.largest.items() if dtype.is_floating_point]
    assert floats and max(floats) < smallest
    with Made() as made:
        dequantize(quantize(torch.randn(64, 64), FAST["int4"]))
    assert made.largest[torch.float32] == 64 * 64, "the watch sees nothing"


def test_a_table_is_read_by_row_and_the_head_from_the_same_bytes(packable, tmp_path):
    pair, path = packable("qwen3-tied-bias"), tmp_path / "packed.safetensors"
    write_packed(pair.checkpoint, FAST["int4"], chosen(pair.ours().spec, ["tokens"]), path)
    model = read_packed(path)
    table = dequantize(quantize(pair.ours().tokens, FAST["int4"]))
    ids = torch.tensor([[3, 96, 0], [1, 3, 3]])
    assert torch.equal(model.tokens(ids), table[ids])
    assert isinstance(model.head, PackedInt4)
    x = torch.eye(64)[:1]
    assert torch.allclose(model.head(x)[0], table[:, 0], atol=2 * ROUNDING * table.abs().max())


def test_the_simulation_leaves_nothing_behind(packable):
    pair = packable("gpt2")
    spec, plain = pair.ours().spec, pair.ours()
    simulation = Simulation(pair.ours(), pair.checkpoint)
    alone = {}
    for weights in (*WEIGHTS, ["positions"]):
        alone[weights[0]] = forward(simulation.apply(FAST["int4"], chosen(spec, weights)), pair.ids[:1, :7]).clone()
        back = forward(simulation.apply(FAST["int4"], frozenset()), pair.ids[:1, :7])
        assert torch.equal(back, forward(plain, pair.ids[:1, :7]))
    for weights in (["tokens.output"], ["all"], ["tokens.input"], ["compute"]):
        again = forward(simulation.apply(FAST["int4"], chosen(spec, weights)), pair.ids[:1, :7])
        assert torch.equal(again, alone[weights[0]])
    assert not torch.equal(alone["tokens.input"], alone["tokens.output"])


def test_tied_tables_stay_tied_unless_one_use_is_named(packable):
    pair = packable("gpt2")
    spec, simulation = pair.ours().spec, Simulation(pair.ours(), pair.checkpoint)
    for weights in (["all"], ["tokens"], ["compute"]):
        model = simulation.apply(FAST["int4"], chosen(spec, weights))
        assert model.head.weight.data_ptr() == model.tokens.data_ptr()
    for weights in (["tokens.input"], ["tokens.output"]):
        model = simulation.apply(FAST["int4"], chosen(spec, weights))
        original, rounded = pair.ours().tokens, dequantize(quantize(pair.ours().tokens, FAST["int4"]))
        given_out, looked_up = model.head.weight, model.tokens
        used = (looked_up, given_out) if weights == ["tokens.input"] else (given_out, looked_up)
        assert torch.equal(used[0], rounded) and torch.equal(used[1], original)


@pytest.mark.parametrize(
    ("scheme", "shape", "why"),
    [
        (Scheme(3, 32, scales="bfloat16"), (64, 64), "there is no packed kernel for 3 bits"),
        (Scheme(4, 16, scales="bfloat16"), (64, 64), "the 4-bit kernel reads groups of 32, 64, 128, 256, not of 16"),
        (Scheme(4, 128, scales="bfloat16"), (64, 576), "128 does not divide 576"),
        (Scheme(4, 32), (64, 64), "read bfloat16 scales, not float16"),
        (Scheme(4, 32, scales="bfloat16", grouping="output"), (64, 64), "groups along the output"),
        (Scheme(4, 32, scales="bfloat16", outliers=0.01), (64, 64), "no packed kernel adds outliers"),
        (Scheme(8, 64, scales="bfloat16"), (64, 64), "reads one scale a row (group_size channel), not groups of 64"),
        (Scheme(8, "channel", False, scales="bfloat16"), (64, 64), "reads symmetric codes alone"),
        (Scheme(4, 32, scales="bfloat16"), (64, 64), ""),
        (Scheme(4, "channel", scales="bfloat16"), (64, 128), ""),
        (Scheme(8, "channel", scales="bfloat16"), (64, 37), ""),
    ],
)
def test_what_no_kernel_runs_is_said(scheme, shape, why):
    said = refusal(scheme, shape, CPU)
    assert (why in said) if why else said == ""


def test_other_devices_and_processors_without_vector_instructions_are_said():
    scheme = Scheme(4, 32, scales="bfloat16")
    assert "not on cuda" in refusal(scheme, (64, 64), torch.device("cuda"))
    code = (
        "import torch; from tokentrail.quantize.cells import refusal; from tokentrail.quantize.scheme import Scheme; "
        "print(refusal(Scheme(4, 32, scales='bfloat16'), (64, 64), torch.device('cpu')))"
    )
    environment = os.environ | {"ATEN_CPU_CAPABILITY": "default", "PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "none of the vector instructions" in said.stdout


def test_what_cannot_run_is_not_written(packable, tmp_path):
    pair, path = packable("gpt2"), tmp_path / "packed.safetensors"
    with pytest.raises(QuantizationError, match=r"there is no packed kernel for 6 bits; choose another scheme"):
        write_packed(pair.checkpoint, Scheme(6, 32, scales="bfloat16"), chosen(pair.ours().spec, ["all"]), path)
    assert not path.exists()


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other.safetensors"
    with pytest.raises(QuantizationError, match=r"other\.safetensors is no safetensors file that can be read"):
        read_packed(path)
    path.write_bytes(b"not tensors")
    with pytest.raises(QuantizationError, match=r"other\.safetensors is no safetensors file that can be read"):
        read_packed(path)
    save_file({"x": torch.zeros(1)}, path)
    with pytest.raises(QuantizationError, match=f"does not say '{FORMAT}'"):
        read_packed(path)


def test_a_matrix_is_stored_in_its_payload():
    scheme = FAST["int4 with middles"]
    stored = as_stored("m", quantize(torch.randn(50, 96), scheme))
    assert sum(t.nbytes for t in stored.values()) == matrix_payload((50, 96), scheme)
