# SPDX-License-Identifier: Apache-2.0
"""Everything that fungi raises by itself: one small family, each with what was wrong, where, and what to do."""
from __future__ import annotations


class Error(Exception):
    """What is wrong with an argument, a file or data.

    >>> import fungi
    >>> try:
    ...     fungi.inspect("no-such-file.safetensors")
    ... except fungi.Error as error:
    ...     print(error.place)
    no-such-file.safetensors
    """

    def __init__(self, message: str, place: str = "", hint: str = "") -> None:
        super().__init__(message, place, hint)
        self.message = message
        self.place = place
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        return f"{text} ({self.hint})" if self.hint else text


class InputError(Error, ValueError):
    """An argument or a sample that cannot be meant."""


class InputTypeError(InputError, TypeError):
    """A sample of a kind that is not known, or of another kind than the model's."""


class SampleError(Error, ValueError):
    """A sample that cannot be used: a damaged picture, a text that is no text."""


class NotFittedError(Error, ValueError, AttributeError):
    """Objectives that compare with other samples need fit() before."""


class MissingError(Error, ImportError):
    """A package that is not installed and that only this call needs."""


class FungiWarning(UserWarning):
    """What you should know but need not act upon."""
