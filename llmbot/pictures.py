"""`!draw`: from a description to a picture, and from the picture to a message."""

from __future__ import annotations

from maubot.matrix import MaubotMatrixClient
from mautrix.types import ImageInfo, MediaMessageEventContent, MessageType, RoomID

from .config import Settings
from .files import attach
from .models import BadPictureError, ModelClient
from .picture_header import Picture, read_picture

_MAX_ALTERNATIVE = 500


class Painter:
    """Has pictures drawn."""

    def __init__(self, models: ModelClient) -> None:
        self._models = models

    async def draw(self, description: str, settings: Settings) -> Picture:
        """Return a picture of what is described.

        Raises:
            ModelError: there is none; the error says why.
        """
        content = await self._models.draw(settings.image_model, description, settings.image_client)
        picture = read_picture(content)
        if picture is None:
            provider = settings.image_model.partition("/")[0]
            raise BadPictureError(provider, "no whole PNG, JPEG, GIF or WebP")
        return picture


async def picture_message(
    client: MaubotMatrixClient, room_id: RoomID, picture: Picture, description: str
) -> MediaMessageEventContent:
    """Upload a picture, encrypted where the room is, and return the message that shows it.

    Raises:
        UploadTooLargeError: the homeserver takes no files of that size.
    """
    content = MediaMessageEventContent(
        msgtype=MessageType.IMAGE,
        body=_alternative(description),
        filename=picture.file_name,
        info=ImageInfo(
            mimetype=picture.media_type,
            size=len(picture.content),
            width=picture.width,
            height=picture.height,
        ),
    )
    await attach(client, room_id, content, picture.content)
    return content


def _alternative(description: str) -> str:
    """Return what stands for a picture where it is not seen."""
    text = " ".join(description.split())
    return text if len(text) <= _MAX_ALTERNATIVE else f"{text[: _MAX_ALTERNATIVE - 1]}…"
