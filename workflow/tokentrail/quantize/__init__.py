"""Quantization, written by hand: schemes as data, quantizers, exact payloads, packed bytes and cells that read them.

Read in this order: `scheme.py` (what can be chosen), `groups.py` (which weights share a scale), `quantizer.py` (codes
and scales), `parts.py` (which weights of a model), `payload.py` (bytes by the formula), `moved.py` (how far weights
move), `simulate.py` (rounded, then run in float32), `packing.py` (codes as bytes), `cells.py` (kernels that read the
bytes), `packed.py` (a model in one file). A weight is read back as `code * scale + middle`; the words and shapes,
everywhere in this room:

    code        whole number of `bits` bits, from -2^(bits-1) to 2^(bits-1) - 1
    group       neighbouring weights that share one scale
    scale       step between two codes
    middle      value of code 0, in asymmetric schemes; 0 in symmetric ones
    line        weights that groups are cut from: a row, a column, or the whole matrix
    out, in     rows and columns of a matrix, which is stored (out, in)
"""
