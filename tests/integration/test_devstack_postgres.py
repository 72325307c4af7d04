import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.postgres import BUNDLED, Postgres, connect, other_installations
from devstack.process import StackError, empty_world

IDS = [bin_dir.parent.name for bin_dir in other_installations()]


@pytest.fixture
def private_folder() -> Iterator[Path]:
    """Make a folder that only its owner may enter (root, when root runs this), and stays so."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)
        assert stat.S_IMODE(Path(name).stat().st_mode) == 0o700


@pytest.mark.parametrize("bin_dir", [BUNDLED, *other_installations()], ids=["bundled", *IDS])
async def test_data_survives_a_crash_and_a_restart_below_a_private_folder(
    bin_dir: Path, private_folder: Path
) -> None:
    folder = private_folder / "world"
    async with empty_world(folder):
        postgres = Postgres(folder, bin_dir)
        await postgres.start()
        try:
            connection = await connect(postgres.url)
            await connection.execute("CREATE TABLE kept AS SELECT 'ü' AS value")
            assert await connection.fetchval("SHOW fsync") == "on"
            await connection.close()
            postgres.kill()
            await postgres.start()
            await postgres.restart()
            connection = await connect(postgres.url)
            assert await connection.fetchval("SELECT value FROM kept") == "ü"
            await connection.close()
        finally:
            await postgres.stop()


async def test_a_missing_postgres_is_one_clear_line(tmp_path: Path) -> None:
    async with empty_world(tmp_path / "world"):
        postgres = Postgres(tmp_path / "world", tmp_path)
        with pytest.raises(StackError, match="initdb"):
            await postgres.start()
