"""The forward pass, written by hand: one frame, interchangeable cells, torch and nothing else.

Read in this order: `frame.py` (the only loop), `cells/` (what a layer is made of), `spec.py` (what a model is, as
data), `families/` (how a checkpoint says which cells it has; `reading/` is what they are written with). `kinds/`,
`describe.py` and `taps.py` serve those who measure. Letters and shapes, everywhere in this room:

    rows        sequences in the batch
    tokens      tokens in this call (T); `past` tokens may already be in the cache
    width       channels of the residual stream
    heads       query heads, or Mamba2 heads
    kv_heads    key/value heads; each serves heads / kv_heads query heads, contiguously
    head_dim    channels of a head (p in Mamba2's formulas)
    groups      Mamba2 groups that share B and C (g)
    state_size  Mamba2 state channels (n)
    l, s        positions of the output and of the input inside one Mamba2 chunk

Linear weights are stored (out, in). float64 stays float64: nothing here casts to float32 unless the input is a
half-precision format.
"""
