"""What a picture's own bytes say, against pictures that another library has made."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from devstack.scripted_model.paintings import HEIGHT, WIDTH, paint
from llmbot.picture_header import MAX_SIDE, Picture, read_picture

FORMATS: list[tuple[str, dict[str, object], str, str]] = [
    ("PNG", {}, "image/png", "picture.png"),
    ("JPEG", {"quality": 70}, "image/jpeg", "picture.jpg"),
    ("JPEG", {"progressive": True, "comment": b"c" * 300}, "image/jpeg", "picture.jpg"),
    ("GIF", {}, "image/gif", "picture.gif"),
    ("WEBP", {"lossless": True}, "image/webp", "picture.webp"),
    ("WEBP", {"quality": 50}, "image/webp", "picture.webp"),
    (
        "WEBP",
        {"quality": 50, "exif": b"Exif\0\0II*\0\x08\0\0\0\0\0"},
        "image/webp",
        "picture.webp",
    ),
]
SIZES = [(1, 1), (3, 2), (257, 300), (300, 257)]


def made(kind: str, options: dict[str, object], size: tuple[int, int] = (30, 20)) -> bytes:
    file = io.BytesIO()
    Image.effect_noise(size, 50).convert("RGB").save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("kind", "options", "media_type", "name"), FORMATS)
def test_type_and_size(
    kind: str, options: dict[str, object], media_type: str, name: str, size: tuple[int, int]
) -> None:
    content = made(kind, options, size)
    picture = read_picture(content)
    assert picture == Picture(content, media_type, *size)
    assert picture.file_name == name


@pytest.mark.parametrize(("kind", "options", "media_type", "name"), FORMATS)
def test_a_picture_that_was_cut_off_is_none(
    kind: str, options: dict[str, object], media_type: str, name: str
) -> None:
    content = made(kind, options)
    assert media_type.endswith(name.rpartition(".")[2].replace("jpg", "jpeg"))
    for length in range(0, len(content) - 2, 7):
        assert read_picture(content[:length]) is None, length


def test_the_scripted_models_paintings_are_whole_pictures() -> None:
    for what in ("a lighthouse at night", "a house in the snow", "x"):
        content = paint(what)
        assert read_picture(content) == Picture(content, "image/png", WIDTH, HEIGHT)
        with Image.open(io.BytesIO(content)) as image:
            image.load()
            assert image.size == (WIDTH, HEIGHT)
    assert paint("x") == paint("x") != paint("y")


@pytest.mark.parametrize("side", [0, MAX_SIDE + 1, 2**31])
def test_a_picture_of_an_odd_size_is_none(side: int) -> None:
    content = made("PNG", {})
    changed = content[:16] + side.to_bytes(4, "big") + content[20:]
    assert read_picture(changed) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"<html></html>", b"<svg/>", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xd9", b"RIFF"],
)
def test_no_pictures(content: bytes) -> None:
    assert read_picture(content) is None


STARTS = [made(kind, options)[:24] for kind, options, *_ in FORMATS]


@given(
    st.sampled_from([b"", *STARTS]),
    st.binary(max_size=60),
    st.sampled_from([b"", b"\xff\xd9", b";", b"\0\0\0\0IEND\xaeB`\x82"]),
)
def test_any_bytes_are_a_picture_or_none(start: bytes, middle: bytes, end: bytes) -> None:
    picture = read_picture(start + middle + end)
    assert picture is None or (0 < picture.width <= MAX_SIDE and 0 < picture.height <= MAX_SIDE)
