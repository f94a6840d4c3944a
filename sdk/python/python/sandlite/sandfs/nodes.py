"""Files and directories of a :class:`~sandlite.sandfs.VirtualFileSystem`."""

from .vfs import VirtualDirectory, VirtualFile, VirtualNode

__all__ = ["VirtualDirectory", "VirtualFile", "VirtualNode"]
