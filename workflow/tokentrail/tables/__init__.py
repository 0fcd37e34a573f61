"""Every table of a run: its columns, types, units and meaning, declared once.

Reading and writing go through `read` and `write`; `docs.py` makes the data dictionary in `config/README.md` from
the same declarations. Conventions: layers, positions and ranks are zero-based; probabilities are after the full
softmax; KL is in nats and names its direction.
"""

from tokentrail.tables.files import SCHEMA_VERSION, atomic_path, frame, read, write
from tokentrail.tables.registry import schema_of

__all__ = ["SCHEMA_VERSION", "atomic_path", "frame", "read", "schema_of", "write"]
