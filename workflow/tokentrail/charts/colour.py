"""Colours as numbers: contrast, shades of one hue, and the colour that stands for another on a dark page.

Lightness is that of OKLab (Ottosson 2020, https://bottosson.github.io/posts/oklab/), contrast that of WCAG 2.2.
A colour is written `#rrggbb`.
"""

from __future__ import annotations

import functools
import math

PAPER, DARK_PAPER = "#ffffff", "#14191f"
TEXT_CONTRAST, MARK_CONTRAST = 4.5, 3.0
"""What WCAG 2.2 asks of text (1.4.3) and of marks (1.4.11) before their background."""
DARKEST_SHADE = 13.0
"""Contrast of the darkest of several shades with the paper."""

Lab = tuple[float, float, float]


def contrast(one: str, other: str) -> float:
    """Contrast ratio, from 1 to 21."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance, from 0 (black) to 1 (white)."""
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def readable(colour: str) -> str:
    """The colour as text: darkened as far as it must be to be read on the paper."""
    return colour if contrast(colour, PAPER) >= TEXT_CONTRAST else with_contrast(colour, TEXT_CONTRAST)


def shades(colour: str, count: int) -> list[str]:
    """Shades of the colour from dark to light, all of which stand out from the paper; one shade is the colour."""
    if count == 1:
        return [colour]
    step = (DARKEST_SHADE / MARK_CONTRAST) ** (1 / (count - 1))
    return [with_contrast(colour, DARKEST_SHADE / step**place) for place in range(count)]


@functools.cache
def on_dark(colour: str) -> str:
    """The colour for the dark page: of the same hue, and of the same contrast with the dark paper as with the light.

    So light and dark change places, what is read stays readable, and shades keep their order.
    """
    ratio = contrast(colour, PAPER)
    _, a, b = to_lab(colour)
    _, tint_a, tint_b = to_lab(DARK_PAPER)
    # The dark paper is not grey: what has no contrast with it has all of its tint.
    return at_contrast((a + tint_a / ratio, b + tint_b / ratio), ratio, DARK_PAPER)


def with_contrast(colour: str, ratio: float) -> str:
    """The colour, made as dark or as light as it must be to have this contrast with the paper."""
    return at_contrast(to_lab(colour)[1:], ratio, PAPER)


def at_contrast(hue: tuple[float, float], ratio: float, paper: str) -> str:
    """The colour of this hue that has at least this contrast with a light or a dark paper, or the end of the scale."""
    ground = luminance(paper) + 0.05
    light = ground > 0.5
    low, high = 0.0, 1.0
    for _ in range(16):
        middle = (low + high) / 2
        enough = contrast(to_hex((middle, *hue)), paper) >= ratio
        beyond = luminance(to_hex((middle, *hue))) + 0.05 >= ground
        if enough if light else not (enough and beyond):
            low = middle
        else:
            high = middle
    return to_hex((low if light else high, *hue))


def linear(colour: str) -> list[float]:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def to_lab(colour: str) -> Lab:
    red, green, blue = linear(colour)
    l = math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    m = math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    s = math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    return (
        min(1.0, 0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s),
        1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
        0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s,
    )


def to_hex(lab: Lab) -> str:
    """The colour in sRGB, with less chroma where sRGB does not reach as far."""
    lightness, a, b = lab
    channels = to_linear(lab)
    while not all(-1e-4 <= c <= 1.0001 for c in channels):
        a, b = 0.97 * a, 0.97 * b
        channels = to_linear((lightness, a, b))
    bounded = (min(1.0, max(0.0, c)) for c in channels)
    encoded = (12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055 for c in bounded)
    return "#" + "".join(f"{round(255 * c):02x}" for c in encoded)


def to_linear(lab: Lab) -> tuple[float, float, float]:
    lightness, a, b = lab
    l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
    )
