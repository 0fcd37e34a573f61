"""Colours: what stands out stands out on both papers, and shades keep their order."""

import pytest
from tokentrail.charts import theme
from tokentrail.charts.colour import (
    DARK_PAPER,
    MARK_CONTRAST,
    PAPER,
    TEXT_CONTRAST,
    contrast,
    luminance,
    on_dark,
    readable,
    shades,
    to_lab,
)
from tokentrail.charts.looks import COLOURS

GREYS = (theme.INK, theme.MUTED, theme.FAINT, theme.GRID, PAPER)


def test_contrast_is_that_of_wcag():
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("colour", COLOURS)
def test_a_model_stands_out_and_can_be_read_as_text(colour):
    assert contrast(colour, PAPER) >= MARK_CONTRAST
    assert contrast(on_dark(colour), DARK_PAPER) >= MARK_CONTRAST
    assert contrast(readable(colour), PAPER) >= TEXT_CONTRAST
    assert contrast(on_dark(readable(colour)), DARK_PAPER) >= TEXT_CONTRAST


@pytest.mark.parametrize("colour", [*COLOURS, *GREYS, theme.ALERT])
def test_on_a_dark_page_the_contrast_is_the_same(colour):
    assert contrast(on_dark(colour), DARK_PAPER) == pytest.approx(contrast(colour, PAPER), rel=0.02)


def test_paper_becomes_dark_paper():
    assert on_dark(PAPER) == DARK_PAPER


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("count", [2, 3, 6])
def test_shades_go_from_dark_to_light_in_one_hue_and_all_stand_out(colour, count):
    made = shades(colour, count)
    light = [luminance(shade) for shade in made]
    assert len(made) == count and light == sorted(set(light))
    assert all(contrast(shade, PAPER) >= MARK_CONTRAST for shade in made)
    towards = to_lab(colour)[1:]
    assert all(sum(x * y for x, y in zip(to_lab(shade)[1:], towards, strict=True)) > 0 for shade in made)
