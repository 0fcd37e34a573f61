"""Tokens, names and numbers as a reader sees them, in charts and in the report alike.

Token text is untrusted: it may hold markup, control characters or marks that change the direction of the text.
What comes from here is plain text with all of that made visible; HTML escaping is the template's work.
"""

from __future__ import annotations

import unicodedata

from tokentrail.bytelevel import bytes_of, legible

SPACE, NEWLINE, TAB = "·", "↵", "⇥"
STAND_INS = {" ": SPACE, "\n": NEWLINE, "\t": TAB}
INVISIBLE = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"}


def visible(token: str) -> str:
    """A token with its spaces as middle dots, newlines as ↵, and everything else that is invisible named.

    A middle dot or an arrow that the token itself holds is named too, so that each picture has one reading.
    """
    marked = "".join(
        STAND_INS.get(c) or (named(c) if c in STAND_INS.values() else printable_character(c)) for c in token
    )
    joins_to_the_left = token and unicodedata.category(token[0]).startswith("M")
    return f"◌{marked}" if joins_to_the_left else marked


def printable(text: str) -> str:
    """Text with its spaces as they are and every other invisible character named."""
    return "".join(c if c == " " else printable_character(c) for c in text)


def printable_character(c: str) -> str:
    return named(c) if unicodedata.category(c) in INVISIBLE else c


def named(c: str) -> str:
    return f"<U+{ord(c):04X}>"


def of_symbols(symbols: str) -> str:
    """Byte-level BPE's visible symbols as the text that they stand for, made visible."""
    raw = bytes_of(symbols)
    return visible(symbols if raw is None else legible(raw))


def shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def probability(p: float) -> str:
    """Three decimals; never 0.000 for what is not zero, nor 1.000 for what is not one."""
    if p == 0 or p == 1:
        return f"{p:.0f}"
    if p < 0.001:
        return "< 0.001"
    if p > 0.9995:
        return "> 0.999"
    return f"{p:.3f}"


def percent(share: float) -> str:
    """One decimal, or `< 0.1%`."""
    if share == 0 or share == 1:
        return f"{share:.0%}"
    return "< 0.1%" if share < 0.001 else f"{share:.1%}"


def scientific(x: float) -> str:
    """Two digits, for differences far below one: `1.0e-4`."""
    if x == 0:
        return "0"
    digits, exponent = f"{x:.1e}".split("e")
    return f"{digits}e{int(exponent)}"


def size(x: float) -> str:
    """Three significant digits without an exponent, for lengths and other quantities near one."""
    if x == 0:
        return "0"
    if x < 0:
        return f"−{size(-x)}"
    if abs(x) >= 1000:
        return f"{x:,.0f}"
    return f"{x:#.3g}".rstrip(".")


def signed(x: float) -> str:
    """Two decimals and the sign, for contributions that add up: `+1.24`, `−0.08`."""
    return f"{x:+.2f}".replace("-", "−")


def whole(n: int) -> str:
    return f"{n:,}"


def millions(n: int) -> str:
    """A count of parameters: `576`, `12.3 k`, `134.5 M`."""
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= factor:
            return f"{n / factor:.1f} {unit}"
    return str(n)


def operations(n: int) -> str:
    """A count of operations: `93.2 GFLOP`."""
    for factor, unit in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= factor:
            return f"{n / factor:#.3g} {unit}FLOP".replace(". ", " ")
    return f"{n} FLOP"


def binary_bytes(n: int) -> str:
    """A size: `72.0 MiB`."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if n >= 2**power:
            return f"{n / 2**power:#.3g} {unit}".replace(". ", " ")
    return f"{n} bytes"
