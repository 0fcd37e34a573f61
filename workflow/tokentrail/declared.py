"""Where every table is declared: table `name_swaps` is the class `NameSwaps` of a module in some `table.py`.

Nothing is imported to find it: the workflow asks whenever it is read, and a stage imports its own tables alone.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

HERE = Path(__file__).parent


@functools.cache
def declared_in(table: str) -> str | None:
    """`module:class` of a table; None if there is none of this name, as for a stage that writes none."""
    wanted = "".join(map(str.capitalize, table.split("_")))
    for path in sorted(HERE.glob("**/table.py")):
        if re.search(rf"^class {wanted}\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            return f"{'.'.join(path.relative_to(HERE.parent).with_suffix('').parts)}:{wanted}"
    return None
