"""Files that belong to an answer."""

from __future__ import annotations

from maubot import MessageEvent
from mautrix.types import EventID, FileInfo, MediaMessageEventContent, MessageType

from .code_files import CodeFile
from .replies import send


async def send_file(event: MessageEvent, file: CodeFile) -> EventID:
    """Send a file after an answer, in the same place; encrypted where the room is."""
    client = event.client
    content = MediaMessageEventContent(
        msgtype=MessageType.FILE,
        body=file.name,
        filename=file.name,
        info=FileInfo(mimetype=file.media_type, size=len(file.content)),
    )
    if await client.state_store.is_encrypted(event.room_id):
        # Only there in a maubot that has encryption.
        from mautrix.crypto.attachments import encrypt_attachment  # noqa: PLC0415

        ciphertext, content.file = encrypt_attachment(file.content)
        content.file.url = await client.upload_media(
            ciphertext, mime_type="application/octet-stream", filename=file.name
        )
    else:
        content.url = await client.upload_media(
            file.content, mime_type=file.media_type, filename=file.name
        )
    return await send(event, content)
