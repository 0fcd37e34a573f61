"""The kinds of cells, each as frozen data: its numbers, and everything that follows from the numbers alone.

The pass in `cells/` reads the numbers. The rest (words, sizes, operations) is for those who measure: a cell says itself
what anyone wants to know of it, and nobody branches on its type. A new kind is a file here, one in `cells/`, a line
below and one in `registry.py`.
"""

from tokentrail.forward.kinds.attention import Attention
from tokentrail.forward.kinds.ffn import Ffn
from tokentrail.forward.kinds.mamba2 import Mamba2

KINDS = (Attention, Mamba2, Ffn)
