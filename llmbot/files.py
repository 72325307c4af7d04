"""Files that belong to an answer: uploaded to the homeserver, encrypted where the room is."""

from __future__ import annotations

from maubot import MessageEvent
from maubot.matrix import MaubotMatrixClient
from mautrix.errors import MatrixRequestError, MTooLarge
from mautrix.types import EventID, FileInfo, MediaMessageEventContent, MessageType, RoomID

from .code_files import CodeFile
from .replies import send


class UploadTooLargeError(Exception):
    """The homeserver takes no files of this size; `limit` is in bytes, None if unknown."""

    def __init__(self, size: int, limit: int | None) -> None:
        super().__init__(f"{size} bytes are more than the homeserver takes (limit: {limit})")
        self.size = size
        self.limit = limit


async def send_file(event: MessageEvent, file: CodeFile) -> EventID:
    """Send a file after an answer, in the same place; encrypted where the room is."""
    content = MediaMessageEventContent(
        msgtype=MessageType.FILE,
        body=file.name,
        filename=file.name,
        info=FileInfo(mimetype=file.media_type, size=len(file.content)),
    )
    await attach(event.client, event.room_id, content, file.content)
    return await send(event, content)


async def attach(
    client: MaubotMatrixClient, room_id: RoomID, content: MediaMessageEventContent, data: bytes
) -> None:
    """Upload what a message shows, and name the place in the message.

    Raises:
        UploadTooLargeError: the homeserver takes no files of that size.
    """
    limit = await _upload_limit(client)
    if limit is not None and len(data) > limit:
        raise UploadTooLargeError(len(data), limit)
    media_type = content.info.mimetype
    if await client.state_store.is_encrypted(room_id):
        # Only there in a maubot that has encryption.
        from mautrix.crypto.attachments import encrypt_attachment  # noqa: PLC0415

        ciphertext, content.file = encrypt_attachment(data)
        # Neither type nor name is the homeserver's business there.
        content.file.url = await _upload(
            client, ciphertext, "application/octet-stream", None, limit
        )
    else:
        content.url = await _upload(client, data, media_type, content.filename, limit)


async def _upload(
    client: MaubotMatrixClient, data: bytes, media_type: str, name: str | None, limit: int | None
) -> str:
    try:
        return str(await client.upload_media(data, mime_type=media_type, filename=name))
    except (MTooLarge, MatrixRequestError) as error:
        # A proxy before the homeserver may have a limit of its own.
        if error.http_status == 413:
            raise UploadTooLargeError(len(data), limit) from error
        raise


async def _upload_limit(client: MaubotMatrixClient) -> int | None:
    """Return the largest file that the homeserver says it takes, in bytes; None if it does not."""
    try:
        limit = (await client.get_media_repo_config()).upload_size
    except Exception:  # noqa: BLE001 - then the upload itself shows
        return None
    return limit if isinstance(limit, int) else None
