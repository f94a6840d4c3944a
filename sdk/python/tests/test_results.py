"""What Python code displays: the value of a last expression, and pictures."""

import asyncio
import base64

import pytest

from sandlite import AsyncSandbox, Sandbox

PICTURE = """
class Picture:
    def _repr_png_(self): return b"png bytes"
    def _repr_svg_(self): return "<svg/>"
    def __repr__(self): return "<a picture>"
Picture()
"""


@pytest.fixture
def box():
    with Sandbox() as made:
        yield made


def test_a_session_prints_the_last_value_and_returns_it(box):
    session = box.session("work")
    result = session.python("x = [1, 2.5, None, {'a': 'b'}]\nx")
    assert (result.value, result.text, result.stdout) == (
        [1, 2.5, None, {"a": "b"}],
        "[1, 2.5, None, {'a': 'b'}]",
        "[1, 2.5, None, {'a': 'b'}]\n",
    )
    assert session.python("x[0]").value == 1 and session.python("'text'").value == "text"
    nothing = session.python("y = 1")
    assert (nothing.value, nothing.text, nothing.stdout) == (None, None, "")
    quiet = session.python("x", echo=False)
    assert (quiet.value, quiet.text, quiet.stdout) == (None, None, "")
    other = session.python("{1, 2}")
    assert (other.value, other.text) == (None, "{1, 2}")
    assert session.python("float('nan')").value is None


def test_a_value_is_exact_or_only_text(box):
    session = box.session("work")
    for code, value in (("2**63", 2**63), ("2**64", None), ("[-2**63, {'a': (2**64,)}]", None), ("[1e300, True]", [1e300, True])):
        result = session.python(code)
        assert (result.value, result.text) == (value, repr(eval(code)))


def test_a_syntax_error_shows_only_the_code(box):
    for code, options in (("def f(:", {}), ("1 +", {"echo": False})):
        said = box.session("work").python(code, **options)
        assert said.exit_code == 1 and said.stderr.lstrip().startswith('File "<session-'), said.stderr


def test_a_single_run_does_that_when_it_is_asked_to(box):
    assert box.python("6 * 7").stdout == ""
    assert (box.python("6 * 7", echo=True).value, box.python("6 * 7", echo=True).stdout) == (42, "42\n")


def test_pictures_are_bytes(box):
    result = box.session("work").python(PICTURE)
    assert [(image.mime, image.data) for image in result.images] == [("image/png", b"png bytes"), ("image/svg+xml", b"<svg/>")]
    assert (result.text, result.value) == ("<a picture>", None)
    assert repr(result) == "Result(exit_code=0, stdout='<a picture>\\n', stderr='', text='<a picture>', images=2)"


FIGURES = """
import sys, types
class Figure:
    def savefig(self, file, format): file.write(b"figure " + format.encode())
open_figures = [1, 2]
pyplot = types.ModuleType("matplotlib.pyplot")
pyplot.get_fignums = lambda: list(open_figures)
pyplot.figure = lambda number: Figure()
pyplot.close = lambda which: open_figures.clear()
sys.modules["matplotlib.pyplot"] = pyplot
"""


def test_open_figures_are_shown_once(box):
    session = box.session("work")
    # The module itself is part of the scientific Python; the glue asks it for nothing else.
    assert [image.data for image in session.python(FIGURES).images] == [b"figure png", b"figure png"]
    assert session.python("1").images == ()


def test_a_value_that_cannot_be_shown_is_still_printed(box):
    session = box.session("work")
    result = session.python("'x' * 300_000")
    assert (result.value, result.text, len(result.stdout)) == (None, None, 300_003)
    many = session.python(PICTURE.replace("Picture()\n", "") + "import _sandlite_main\nfor _ in range(100): _sandlite_main._show_value(Picture())")
    assert many.ok and len(many.images) < 100


def test_actions_have_the_same(box):
    answer = box.call_action("python", {"code": PICTURE, "session": "work"})
    assert answer.data["text"] == "<a picture>"
    assert answer.data["images"][0] == {"mime": "image/png", "data": base64.b64encode(b"png bytes").decode()}
    assert box.call_action("python", {"code": "6 * 7", "session": "work"}).data["value"] == 42
    assert box.call_action("python", {"code": "6 * 7"}).data["value"] is None


def test_pictures_that_are_too_large_for_a_model_are_left_out_of_its_answer(box):
    code = "class P:\n def _repr_png_(self): return b'x' * 500_000\n def __repr__(self): return 'P'\nP()"
    assert len(box.python(code, echo=True).images[0].data) == 500_000
    answer = box.call_action("python", {"code": code, "echo": True})
    assert answer.data["images"] == [] and "images omitted: 1" in answer.text and not answer.is_error


def test_the_same_for_asyncio():
    async def main():
        async with AsyncSandbox() as box:
            assert (await box.session("work").python("6 * 7")).value == 42
            assert len((await box.python(PICTURE, echo=True)).images) == 2

    asyncio.run(main())
