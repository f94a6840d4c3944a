"""Policies of single nodes, and views that filter by them. They are not inherited from directories."""

from __future__ import annotations

from typing import FrozenSet, Iterable, Optional, Set


class NodePolicy:
    """The permissions and the visibility of one node. ``visibility`` is an older name of ``classification``."""

    def __init__(
        self,
        readable: bool = True,
        writable: bool = True,
        append_only: bool = False,
        classification: Optional[str] = None,
        principals: Iterable[str] = (),
        *,
        visibility: Optional[str] = None,
    ) -> None:
        self.readable = readable
        self.writable = writable
        self.append_only = append_only
        self.classification = classification or visibility or "public"
        self.principals: Set[str] = set(principals)

    @property
    def visibility(self) -> str:
        """Same as ``classification``."""
        return self.classification

    def copy(self) -> "NodePolicy":
        """Returns an independent copy of the policy."""
        return NodePolicy(self.readable, self.writable, self.append_only, self.classification, self.principals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodePolicy) and vars(self) == vars(other)

    def __repr__(self) -> str:
        return f"NodePolicy({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class VisibilityView:
    """The visible nodes: by classification, or by principal if a node lists principals."""

    def __init__(
        self, classifications: Optional[Iterable[str]] = None, principals: Optional[Iterable[str]] = None
    ) -> None:
        self.classifications: Optional[FrozenSet[str]] = None if classifications is None else frozenset(classifications)
        self.principals: Optional[FrozenSet[str]] = None if principals is None else frozenset(principals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VisibilityView) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.classifications, self.principals))

    def __repr__(self) -> str:
        return f"VisibilityView({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def allows(self, policy: NodePolicy) -> bool:
        """Returns whether a node with this policy is visible. A node that lists principals is visible only to them."""
        if policy.principals:
            return bool(self.principals and policy.principals & self.principals)
        return self.classifications is None or policy.classification in self.classifications


__all__ = ["NodePolicy", "VisibilityView"]
