"""Tokens, names and numbers as a reader sees them, in charts and in the report alike.

Token text is untrusted: it may hold markup, control characters or marks that change the direction of the text.
What comes from here is plain text with all of that made visible; HTML escaping is the template's work.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

from tokentrail.bytelevel import bytes_of, legible

SPACE, NEWLINE, TAB = "·", "↵", "⇥"
STAND_INS = {" ": SPACE, "\n": NEWLINE, "\t": TAB}
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
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
        return "1" if p else "0"
    if p < 0.001:
        return "< 0.001"
    shown = f"{p:.3f}"
    return "> 0.999" if shown == "1.000" else shown


def percent(share: float) -> str:
    """One decimal; never 0.0% for what is not nothing, nor 100.0% for what is not all."""
    if share < 0:
        return f"−{percent(-share)}"
    if share == 0 or share == 1:
        return "100%" if share else "0%"
    if share < 0.001:
        return "< 0.1%"
    shown = f"{share:.1%}"
    return "> 99.9%" if share < 1 and shown == "100.0%" else shown


def scientific(x: float) -> str:
    """Two digits, for differences far below one: `1.0e-4`."""
    if x == 0:
        return "0"
    digits, exponent = f"{x:.1e}".split("e")
    return f"{digits}e{int(exponent)}"


def size(x: float) -> str:
    """Three significant digits, for lengths and other quantities: `0.0412`, `12.3`, `4,096`; `9.35 × 10⁻⁵`."""
    if x == 0:
        return "0"
    if x < 0:
        return f"−{size(-x)}"
    shown = f"{x:#.3g}"
    if "e" not in shown:
        return shown.rstrip(".")
    if x >= 1:
        return f"{x:,.0f}"
    digits, exponent = shown.split("e")
    return f"{digits} × 10{str(int(exponent)).translate(RAISED)}"


def decimals(x: float, places: int = 2) -> str:
    """A number with so many decimals; what rounds to zero has no sign: `0.08`, `−0.08`, `0.00`."""
    shown = f"{x:.{places}f}"
    return f"{0:.{places}f}" if float(shown) == 0 else shown.replace("-", "−")


def signed(x: float) -> str:
    """Two decimals and the sign, for contributions that add up: `+1.24`, `−0.08`, `0.00`."""
    shown = decimals(x)
    return f"+{shown}" if float(f"{x:.2f}") > 0 else shown


def whole(n: int) -> str:
    return f"{n:,}"


def millions(n: int) -> str:
    """A count of parameters: `576`, `12.3 k`, `134.5 M`."""
    return str(n) if n < 1000 else in_unit(n, 1000, ("", "k", "M", "G", "T"), lambda x: f"{x:.1f}")


def operations(n: int) -> str:
    """A count of operations: `93.2 GFLOP`."""
    return f"{n} FLOP" if n < 1000 else in_unit(n, 1000, ("", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"), size)


def binary_bytes(n: int) -> str:
    """A size: `1 byte`, `72.0 MiB`."""
    if n < 1024:
        return f"{n} byte" if n == 1 else f"{n} bytes"
    return in_unit(n, 1024, ("", "KiB", "MiB", "GiB", "TiB"), size)


def in_unit(n: int, base: int, units: Sequence[str], shown: Callable[[float], str]) -> str:
    """A number of `base` or more in the first unit in which, as `shown`, it stays below one of the next."""
    for power, unit in enumerate(units[1:], 1):
        told = shown(n / base**power)
        if float(told.replace(",", "")) < base or unit == units[-1]:
            break
    return f"{told} {unit}"
