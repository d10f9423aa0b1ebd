"""What a terminal shows of what was written to it: as far as a live display moves its cursor.

It never scrolls; it folds lines anew when it is made narrower, as most terminals do; and every
character takes one cell, whatever others reckon.
"""

from __future__ import annotations

import re

_PIECE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


class Screen:
    """Rows, and a cursor; `text` has them as a person sees them."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._rows = [""]
        self._goes_on = [False]
        """Of each row, whether the next one is the rest of its line."""
        self._row = 0
        self._column = 0
        self._folds = True

    @property
    def text(self) -> list[str]:
        """The rows that are not empty."""
        return [row.rstrip() for row in self._rows if row.strip()]

    def write(self, output: str) -> None:
        """What a program writes, the terminal driver's carriage returns left out."""
        for found in _PIECE.finditer(output):
            given, letter, control, text = found.groups()
            if text:
                self._put(text)
            elif control == "\n":
                self._goes_on[self._row] = False
                self._down()
                self._column = 0
            elif control == "\r":
                self._column = 0
            elif letter == "A":
                self._row = max(self._row - int(given or 1), 0)
            elif letter == "K":
                assert given == "2", output
                self._rows[self._row] = ""
                self._goes_on[self._row] = False
            elif given == "?7":
                self._folds = letter == "h"
            else:
                assert letter in "mhl", found[0]

    def make_narrower(self, columns: int) -> None:
        """With the cursor at the end of what was written."""
        lines = [""]
        for row, goes_on in zip(self._rows, self._goes_on, strict=True):
            lines[-1] += row
            if not goes_on:
                lines.append("")
        lines.pop()
        self._rows, self._goes_on, self._columns = [], [], columns
        for line in lines:
            parts = [line[at : at + columns] for at in range(0, len(line), columns)] or [""]
            self._rows += parts
            self._goes_on += [True] * (len(parts) - 1) + [False]
        self._row, self._column = len(self._rows) - 1, len(self._rows[-1])

    def _put(self, text: str) -> None:
        for character in text:
            if self._column == self._columns and not self._folds:
                self._column -= 1
            if self._column == self._columns:
                self._goes_on[self._row] = True
                self._down()
                self._column = 0
            row = self._rows[self._row].ljust(self._column)
            self._rows[self._row] = row[: self._column] + character + row[self._column + 1 :]
            self._column += 1

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append("")
            self._goes_on.append(False)
