"""label("name"): blocks of a part of the program under a name of its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TypeVar

from hakmem import _hakmem

_F = TypeVar("_F", bound=Callable)


class label:  # noqa: N801
    """A context manager and decorator: what MEM and OBJ allocate inside is booked under `name`.

    It belongs to the context (contextvars): tasks that are made inside inherit it, other tasks and threads do
    not have it, and it comes back after each await. Scopes nest, the innermost counts. A coroutine function
    that is decorated has it while it runs. One object may be used many times, also at once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._number = _hakmem.define(name)
        self._variable = _hakmem.scope_variable()

    def __enter__(self) -> label:
        self._variable.set((self._number, self._variable.get(None)))
        _hakmem.scope_changed()
        return self

    def __exit__(self, *exception: object) -> None:
        scope = self._variable.get(None)
        self._variable.set(scope[1] if scope else None)
        _hakmem.scope_changed()

    def __call__(self, function: _F) -> _F:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def inside(*args, **kwargs):
                with self:
                    return await function(*args, **kwargs)
        else:

            @functools.wraps(function)
            def inside(*args, **kwargs):
                with self:
                    return function(*args, **kwargs)

        return inside
