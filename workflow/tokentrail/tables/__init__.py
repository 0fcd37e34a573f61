"""Tables as files; their columns, types, units and meaning are declared in their stages' rooms.

Reading and writing go through `read` and `write`; `docs.py` makes the data dictionary in `config/README.md` from
the same declarations. Conventions: layers, positions and ranks are zero-based; probabilities are after the full
softmax; KL is in nats and names its direction. Every table ends with a column `not_measured`: a row that fills it holds
what was asked of a model that cannot be asked it, and why; the stages, charts and sections behind it read the others.
"""

from tokentrail.tables.files import NOT_MEASURED, SCHEMA_VERSION, atomic_path, frame, read, refused, write
from tokentrail.tables.registry import schema_of

__all__ = ["NOT_MEASURED", "SCHEMA_VERSION", "atomic_path", "frame", "read", "refused", "schema_of", "write"]
