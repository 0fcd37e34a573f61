"""The table `weights`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, text


class Weights(Table):
    """Every file that the model is made from, hashed."""

    file = text("file name inside its source; for a derived file, the name that it was given")
    bytes = count("size of the file", "bytes")
    sha256 = text("SHA-256 of the file's content, hexadecimal", regex="^[0-9a-f]{64}$")
    role = text(
        "`source` as fetched, or `derived` from a source file by a conversion or a change", regex="^(source|derived)$"
    )
    source_kind = text("kind of the source, as in the configuration", regex="^[a-z_]+$")
    source = text("name of the source: of a package, a hub's repository or a folder")
    revision = text("package version or hub commit; empty for a source without")
    license = text("license as the configuration or the source states it; empty if neither does")
    stored_dtype = text("number formats of the tensors in the file; empty for files without tensors")
    pinned = text(
        "`config`: the hash was given in the configuration; `lock`: it was recorded on first use and held since; "
        "`derived`: made here from pinned files",
        regex="^(config|lock|derived)$",
    )
    changes = text("what the configuration changes in a derived `config.json`, as JSON; empty if nothing")
