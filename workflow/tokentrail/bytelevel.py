"""Byte-level BPE's alphabet: a visible character for each byte (GPT-2's table, by its rule), and bytes as text."""

from __future__ import annotations

PICTURED = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
"""Bytes that stand for themselves; the others get the characters from U+0100 on, in order."""
SYMBOL_OF = {b: chr(b) for b in PICTURED}
SYMBOL_OF |= {b: chr(256 + place) for place, b in enumerate(b for b in range(256) if b not in SYMBOL_OF)}
BYTE_OF = {symbol: b for b, symbol in SYMBOL_OF.items()}


def symbols_of(raw: bytes) -> str:
    """Bytes as visible symbols, one for each."""
    return "".join(SYMBOL_OF[b] for b in raw)


def bytes_of(symbols: str) -> bytes | None:
    """The bytes that visible symbols stand for, None if a character is no symbol."""
    return bytes(BYTE_OF[c] for c in symbols) if all(c in BYTE_OF for c in symbols) else None


def legible(raw: bytes) -> str:
    """UTF-8 as text, with each byte that belongs to no whole character as <0xNN>."""
    return raw.decode("utf-8", errors="surrogateescape").translate(
        {0xDC00 + b: f"<0x{b:02X}>" for b in range(0x80, 0x100)}
    )
