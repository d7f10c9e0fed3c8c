"""Exact memory accounts, limits and trimming for CPython."""

from hakmem._hakmem import status

__all__ = ["status"]
