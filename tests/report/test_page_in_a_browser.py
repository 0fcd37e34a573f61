"""The page as it is seen, read and reached: widths, sizes, contrast, heights and the keyboard, in a browser."""

import axe_playwright_python.sync_playwright as axe
import pytest
import synthetic_tables as synthetic
from browser import NARROW, WIDE, browser
from test_charts import CHARTS, LIBRARY, draw
from tokentrail.charts import save
from tokentrail.charts.colour import TEXT_CONTRAST
from tokentrail.report.build import build

MODELS = 4
SMALLEST_TEXT = 11  # CSS pixels

TABLES = """() => [...document.querySelectorAll("table")].map(table => ({
    caption: table.caption.textContent, width: table.getBoundingClientRect().width,
    room: table.parentElement.clientWidth}))"""
SCROLLING = """() => [...document.querySelectorAll("*")].filter(each =>
    ["auto", "scroll"].includes(getComputedStyle(each).overflowX) && each.scrollWidth > each.clientWidth
    ).map(each => ({name: each.getAttribute("aria-label"), role: each.getAttribute("role"), tab: each.tabIndex,
    shaded: getComputedStyle(each).backgroundImage.includes("gradient")}))"""
SIZES = """() => [...document.querySelectorAll("svg text")].filter(text => text.textContent.trim()).map(text => {
    const {a, b} = text.getScreenCTM();
    return {said: text.textContent, chart: text.closest("figure").id,
        size: parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b)};
})"""
WALK = """async () => {
    const page = document.documentElement, before = page.scrollHeight;
    for (let y = 0; y < page.scrollHeight; y += innerHeight) {
        scrollTo({top: y, behavior: "instant"});
        await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    }
    return [before, page.scrollHeight];
}"""
# Whatever is painted below the middle of a text, mixed in the order of painting, is what the text stands on.
CONTRASTS = """() => {
    const channels = colour => colour.match(/[\\d.]+/g).map(Number);
    const luminance = colour => colour.slice(0, 3).map(c => c / 255).map(
        c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
    ).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const mixed = (over, under, share) => under.map((c, i) => over[i] * share + c * (1 - share));
    const paper = channels(getComputedStyle(document.body).backgroundColor).slice(0, 3);
    const found = [];
    for (const svg of document.querySelectorAll("svg")) {
        const painted = [...svg.querySelectorAll("path, rect, circle, text")].filter(each => !each.closest("defs"));
        const boxes = painted.map(each => each.getBoundingClientRect());
        painted.forEach((text, place) => {
            if (text.tagName !== "text" || !text.textContent.trim()) return;
            const box = boxes[place], x = box.x + box.width / 2, y = box.y + box.height / 2;
            let below = paper;
            for (let i = 0; i < place; i++) {
                const shape = painted[i], style = getComputedStyle(shape);
                if (shape.tagName === "text" || style.fill === "none" || style.fill.startsWith("url")) continue;
                if (x < boxes[i].left || x > boxes[i].right || y < boxes[i].top || y > boxes[i].bottom) continue;
                const point = new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse());
                if (shape.isPointInFill(point))
                    below = mixed(channels(style.fill), below, style.opacity * style.fillOpacity);
            }
            const style = getComputedStyle(text);
            const ink = mixed(channels(style.fill), below, style.opacity * style.fillOpacity);
            const [dark, light] = [luminance(ink), luminance(below)].sort((a, b) => a - b);
            const contrast = (light + 0.05) / (dark + 0.05);
            found.push({said: text.textContent, chart: svg.closest("figure").id, contrast});
        });
    }
    return found;
}"""
FOCUSED = """() => { const each = document.activeElement, style = getComputedStyle(each);
    return {tag: each.tagName, label: each.getAttribute("aria-label"), text: each.textContent.slice(0, 60),
    outline: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2}; }"""


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    """A report of several models with every chart."""
    folder = tmp_path_factory.mktemp("report")
    for name in CHARTS:
        (folder / f"{name}.svg").write_text(save.encode_svg(draw(name, MODELS).to_dict(validate=False)))
    page = folder / "report.html"
    page.write_text(build(synthetic.tables(MODELS), folder, synthetic.settings(MODELS)))
    return page.as_uri()


@pytest.fixture(scope="module")
def chromium():
    with browser() as running:
        yield running


def listening(window, address: str):
    """The window; its `faults` become what it says on its console and asks for beside the page at `address`."""
    window.faults = []
    window.on("console", lambda said: window.faults.append(said.text))
    window.on("request", lambda asked: window.faults.extend({asked.url} - {address}))
    return window


@pytest.fixture(scope="module")
def opened(chromium, address):
    """The page in a window of some width and scheme, with everything unfolded."""
    windows = {}

    def of(width: int, scheme: str = "light"):
        if (width, scheme) not in windows:
            window = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            listening(window, address).goto(address)
            window.evaluate("() => document.querySelectorAll('details').forEach(each => each.open = true)")
            windows[width, scheme] = window
        return windows[width, scheme]

    return of


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_no_table_is_wider_than_its_column(opened, width):
    tables = opened(width).evaluate(TABLES)
    assert len(tables) > 20
    assert not [table for table in tables if table["width"] > table["room"] + 1]


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_nothing_sticks_out_and_what_scrolls_is_named_shaded_and_reached(opened, width):
    page = opened(width)
    assert page.evaluate("() => document.documentElement.scrollWidth") == width
    for region in page.evaluate(SCROLLING):
        assert region["role"] == "region" and region["name"] and region["tab"] == 0 and region["shaded"], region


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_no_text_of_a_chart_is_small(opened, width):
    texts = opened(width).evaluate(SIZES)
    assert len(texts) > 1000
    assert not [text for text in texts if text["size"] < SMALLEST_TEXT]


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_page_keeps_its_height_while_it_is_read(opened, width):
    before, after = opened(width).evaluate(WALK)
    assert before == after


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_label_of_every_chart_can_be_read(opened, scheme):
    texts = opened(WIDE, scheme).evaluate(CONTRASTS)
    assert {text["chart"] for text in texts} == {f"chart-{name}" for name in CHARTS}
    assert not [text for text in texts if text["contrast"] < TEXT_CONTRAST]


def test_charts_are_dark_on_a_dark_page_and_light_on_paper(opened):
    page = opened(WIDE, "dark")
    lines = "() => getComputedStyle(document.querySelector('svg .f-1c2430')).fill"
    dark = page.evaluate(lines)
    page.emulate_media(media="print")
    light = page.evaluate(lines)
    page.emulate_media(media="screen")
    assert light == "rgb(28, 36, 48)" and dark != light


def test_the_keyboard_skips_to_the_results_and_shows_where_it_is(opened):
    page = opened(NARROW)
    page.evaluate("() => { document.activeElement.blur(); scrollTo(0, 0); }")
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUSED))
    assert seen[0]["tag"] == "A" and seen[0]["text"].startswith("Skip")
    assert all(each["outline"] for each in seen)
    assert any((each["label"] or "").startswith("Chart") for each in seen)


# A drawing is one image to axe too, which knows nothing of its labels: those have a test of their own.
@pytest.mark.parametrize("width, scheme", [(WIDE, "light"), (NARROW, "dark")])
def test_axe_finds_nothing(opened, width, scheme):
    page, everything_else = opened(width, scheme), {"exclude": [["svg > *"]]}
    found = axe.Axe().run(page, everything_else, {"resultTypes": ["violations"]}).response["violations"]
    assert not [(each["id"], len(each["nodes"]), each["nodes"][0]["html"][:200]) for each in found]


def test_the_page_asks_for_nothing_and_breaks_no_rule_of_its_own(opened):
    assert opened(WIDE).faults == []


def test_a_chart_on_a_page_of_its_own_is_drawn_and_asks_for_nothing(chromium, tmp_path):
    save.save(draw("census", 1), [tmp_path / "census.html"], LIBRARY)
    window = listening(chromium.new_page(), address := (tmp_path / "census.html").as_uri())
    window.goto(address)
    window.wait_for_selector("#chart canvas, #chart svg", timeout=10_000)
    assert window.faults == []
