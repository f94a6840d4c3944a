"""The workspace backend of Pydantic AI: its own conformance suite."""

import asyncio
import os

import pytest

pytest.importorskip("pydantic_ai.workspaces")
conformance = pytest.importorskip("pydantic_ai.workspaces.conformance")

from pydantic_ai.workspaces import WorkspaceOutputLimitError, WorkspaceRef, WorkspaceUnavailableError  # noqa: E402

from sandlite.pydantic_ai import SandliteWorkspace  # noqa: E402


@pytest.fixture
def anyio_backend():
    return "asyncio"


class TestConformance(conformance.WorkspaceBackendSuite):
    @pytest.fixture
    def backend(self, tmp_path):
        return SandliteWorkspace(tmp_path)

    @pytest.fixture
    def fresh_backend(self, tmp_path):
        return lambda: SandliteWorkspace(tmp_path)

    @pytest.fixture
    def attach_backend(self):
        return lambda ref: SandliteWorkspace(ref=ref)

    # A rule since version 2.68. Here, a command is a transaction: when it ends, so do all its processes.
    async def test_a_backend_attached_by_ref_reaches_a_detached_process(self):
        pytest.skip("no process outlives its command")

    @pytest.fixture
    def destroy_environment(self):
        return lambda backend: backend.destroy()

    # Its rule about them passes, after it has waited half a minute for a child that ended with its command.
    @pytest.fixture
    def can_detect_exit_with_inherited_output_pipes(self):
        return os.environ.get("SANDLITE_SDK_FRAMEWORKS") == "1"


def test_a_workspace_is_new_or_one_that_a_ref_names(tmp_path):
    with pytest.raises(ValueError):
        SandliteWorkspace()
    with pytest.raises(ValueError):
        SandliteWorkspace(ref=WorkspaceRef(provider="other", id="x"))

    async def main():
        backend = SandliteWorkspace(tmp_path)
        assert backend.ref is None and list(tmp_path.iterdir()) == []
        await backend.write_bytes("/tmp/x", b"1")
        await backend.aclose()
        again = SandliteWorkspace(ref=backend.ref)
        assert await again.read_bytes("/tmp/x") == b"1"
        with pytest.raises(WorkspaceUnavailableError):
            await SandliteWorkspace(ref=WorkspaceRef(provider="sandlite", id=str(tmp_path / "none.db"))).working_dir()

    asyncio.run(main())


def test_output_that_is_not_kept_is_an_error(tmp_path):
    async def main():
        backend = SandliteWorkspace(tmp_path, preset="strict")
        with pytest.raises(WorkspaceOutputLimitError) as caught:
            await backend.run(["sh", "-c", "yes | head -c 5000000"])
        assert caught.value.stdout.startswith("y\n")

    asyncio.run(main())
