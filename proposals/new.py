"""Start a proposal: `python proposals/new.py "Title"` makes the next `NNNN-slug.md`.

Needs nothing but Python 3.11. Afterwards either the proposal and its row in the `README.md` beside
it are both there, and the proposal's path is printed, or nothing has changed and stderr says why
(exit code 2). No other file is touched, and no existing proposal is ever overwritten.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import fcntl
import io
import os
import re
import secrets
import stat
import string
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

STATUSES = ("draft", "accepted", "rejected", "superseded", "implemented")
HERE = Path(__file__).resolve().parent
LAST_NUMBER = 9999
SLUG_LENGTH = 60
FALLBACK_SLUG = "proposal"
INDEX_HEADER = ("| Number | Title | Status | Date |", "|---|---|---|---|")

# Letters that Unicode does not take apart into an ASCII letter and an accent.
LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
    | dict.fromkeys("'’`", "")
)
# Only what Markdown would otherwise change, so that ordinary titles stay as they were typed.
ACTIVE_MARKDOWN = re.compile(
    r"""[`*\[\]<|~]
      | (?<![^\W_])_ | _(?![^\W_])      # an underscore, except inside a word
      | &(?=\#?\w+;)                    # the start of an entity
      | \#(?=\#*$)                      # would close a heading
      | \\(?=[!-/:-@\[-`{-~])           # a backslash that would escape what follows it
    """,
    re.VERBOSE,
)
PROPOSAL_NAME = re.compile(r"(\d{4})(?:-.*)?\.md", re.DOTALL)
INDEX_TITLES = re.compile(r"\|\s*Number\s*\|\s*Title\s*\|\s*Status\s*\|\s*Date\s*\|\s*")
INDEX_RULE = re.compile(r"\|[\s:|-]+\|\s*")
INDEX_ROW = re.compile(r"\|\s*\[SUP-(\d{4})\]")


class ProposalError(Exception):
    """The proposal cannot be made; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What goes into the front matter and the index."""

    number: int
    title: str
    author: str
    status: str
    date: date

    @property
    def file_name(self) -> str:
        """`NNNN-slug.md`; the slug is never empty."""
        return f"{self.number:04d}-{slug(self.title)}.md"

    @property
    def index_row(self) -> str:
        """The row of the index table, without its line end."""
        link = f"[SUP-{self.number:04d}]({self.file_name})"
        return f"| {link} | {as_markdown(self.title)} | {self.status} | {self.date} |"


def slug(title: str) -> str:
    """The title as lower-case ASCII words joined by dashes, at most ``SLUG_LENGTH`` characters."""
    letters = unicodedata.normalize("NFKD", title.lower().translate(LETTERS))
    words = re.sub(r"[^a-z0-9]+", "-", letters.encode("ascii", "ignore").decode().lower())
    words = words.strip("-")
    if len(words) > SLUG_LENGTH:
        # One character more than fits, so that a word that ends just there is kept whole.
        whole_words, _, _ = words[: SLUG_LENGTH + 1].rpartition("-")
        words = whole_words or words[:SLUG_LENGTH]
    return words or FALLBACK_SLUG


def as_markdown(text: str) -> str:
    """``text`` so that Markdown shows it unchanged, in a heading and in a table cell."""
    return ACTIVE_MARKDOWN.sub(r"\\\g<0>", text)


def one_line(text: str, what: str) -> str:
    """``text`` without the spaces around it; refuses what one line of YAML cannot hold."""
    stripped = text.strip(" ")
    for character in stripped:
        if unicodedata.category(character) == "Cs":
            raise ProposalError(f"the {what} is not valid text in this terminal's encoding")
        if unicodedata.category(character) in {"Cc", "Zl", "Zp"} or character in "\ufffe\uffff":
            raise ProposalError(
                f"the {what} must be one line of plain text, but contains U+{ord(character):04X}"
            )
    if not stripped.strip():
        raise ProposalError(f"the {what} is empty; write what the proposal is about in a few words")
    return stripped.strip()


def render(template: str, proposal: Proposal) -> str:
    """The proposal's text; values are put in only once, so a title may contain ``$date``."""
    values = {
        "number": str(proposal.number),
        "id": f"SUP-{proposal.number:04d}",
        "title": proposal.title,
        "heading": as_markdown(proposal.title),
        "author": proposal.author,
        "status": proposal.status,
        "date": proposal.date.isoformat(),
    }
    form = string.Template(template)
    missing = {"number", "title", "status", "date"} - set(form.get_identifiers())
    if missing:
        names = ", ".join(f"${name}" for name in sorted(missing))
        raise ProposalError(f"the template has no place for {names}")
    try:
        return form.substitute(values)
    except KeyError as unknown:
        raise ProposalError(
            f"the template asks for ${unknown.args[0]}, which nothing fills"
        ) from None
    except ValueError as problem:
        raise ProposalError(f"the template has a stray `$` ({problem}); write `$$`") from None


def read(path: Path, what: str) -> str:
    """The file's text with its own line ends; a :class:`ProposalError` names it if that fails."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as problem:
        raise ProposalError(f"cannot read the {what} {path}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise ProposalError(f"the {what} {path} is not UTF-8 text") from None


def table_rows(index: str) -> tuple[list[str], int, int]:
    """The index's lines, and where in them the table's rows begin and end."""
    lines = index.splitlines(keepends=True)
    for start in range(2, len(lines) + 1):
        if INDEX_TITLES.fullmatch(lines[start - 2]) and INDEX_RULE.fullmatch(lines[start - 1]):
            end = start
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            return lines, start, end
    raise ProposalError(f"the index README.md has no table that begins with `{INDEX_HEADER[0]}`")


def with_row(index: str, proposal: Proposal) -> str:
    """The index with the proposal's row in its place by number; all else stays byte for byte."""
    lines, start, end = table_rows(index)
    line_end = "\r\n" if lines[start - 1].endswith("\r\n") else "\n"
    place = start
    for row_place in range(start, end):
        row = INDEX_ROW.match(lines[row_place])
        if row is None or int(row[1]) < proposal.number:
            place = row_place + 1
    if not lines[place - 1].endswith("\n"):
        lines[place - 1] += line_end
    lines.insert(place, proposal.index_row + line_end)
    return "".join(lines)


def numbers_taken(folder: Path, index: str) -> set[int]:
    """The numbers of all proposals, by file and by row: a removed file's number stays taken."""
    files = (PROPOSAL_NAME.fullmatch(path.name) for path in folder.iterdir())
    lines, start, end = table_rows(index)
    rows = (INDEX_ROW.match(line) for line in lines[start:end])
    return {int(match[1]) for match in (*files, *rows) if match}


def choose_number(taken: set[int], wanted: int | None) -> int:
    """``wanted`` if it is free, else one more than the highest: gaps are not filled unasked."""
    if wanted in taken:
        raise ProposalError(
            f"SUP-{wanted:04d} exists already; leave out --number to take the next free one"
        )
    number = wanted if wanted is not None else max(taken, default=0) + 1
    if number > LAST_NUMBER:
        raise ProposalError(
            f"SUP-{LAST_NUMBER} exists, so there is no next number; choose one with --number"
        )
    return number


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other runs of this tool out of the folder: two must not take one number."""
    if not folder.is_dir():
        kind = "is not a folder" if folder.exists() else "does not exist; make it first"
        raise ProposalError(f"the output folder {folder} {kind}")
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def temporary(beside: Path, text: str) -> Iterator[Path]:
    """A synced file in the folder of ``beside`` with its permissions; gone at the end."""
    path = beside.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        # Not tempfile: its files are private to the user, and these are to be committed.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as out:
            out.write(text.encode("utf-8"))
            out.flush()
            os.fsync(out.fileno())
        with contextlib.suppress(FileNotFoundError):
            path.chmod(stat.S_IMODE(beside.stat().st_mode))
        yield path
    finally:
        path.unlink(missing_ok=True)


def place_new(source: Path, target: Path) -> None:
    """Give the file its name in one step; FileExistsError if the name is taken."""
    try:
        os.link(source, target)
    except OSError as problem:
        if problem.errno not in {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}:
            raise
        # A file system without hard links: reserve the name, then put the content in its place.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL))
        try:
            source.replace(target)
        except BaseException:
            target.unlink()
            raise


def create(options: argparse.Namespace) -> Path:
    """Make the proposal and its index row; returns the new file's path."""
    title, author = one_line(options.title, "title"), one_line(options.author, "author")
    if not options.output:
        raise ProposalError("--output needs the path of a folder")
    folder, template = Path(options.output), read(HERE / "template.md", "template")
    with locked(folder):
        index_path = (folder / "README.md").resolve()
        index = "\n".join(("# Proposals", "", *INDEX_HEADER, ""))
        if index_path.exists():
            index = read(index_path, "index")
        number = choose_number(numbers_taken(folder, index), options.number)
        proposal = Proposal(number, title, author, options.status, options.date)
        target = folder / proposal.file_name
        with (
            temporary(target, render(template, proposal)) as new_text,
            temporary(index_path, with_row(index, proposal)) as new_index,
        ):
            place_new(new_text, target)
            try:
                new_index.replace(index_path)
            except BaseException:
                target.unlink()
                raise
    return target


def iso_date(text: str) -> date:
    """A date written YYYY-MM-DD (``fromisoformat`` alone takes other spellings as well)."""
    with contextlib.suppress(ValueError):
        if (day := date.fromisoformat(text)).isoformat() == text:
            return day
    raise argparse.ArgumentTypeError(f"{text!r} is not a date; write it as YYYY-MM-DD")


def proposal_number(text: str) -> int:
    """A number from 1 to ``LAST_NUMBER``, with or without leading zeros."""
    if text.isascii() and text.isdigit() and len(text) <= 4 and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {LAST_NUMBER}")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line; argparse ends the process with exit code 2 if it is wrong."""
    parser = argparse.ArgumentParser(
        prog="new.py",
        description="Start a proposal: make the next NNNN-slug.md and its row in the index.",
        epilog='A title that begins with a dash goes last, after "--".',
        allow_abbrev=False,
    )
    parser.add_argument("title", metavar="TITLE", help="what it is about, in a few words")
    parser.add_argument("--author", metavar="NAME", default="The skillup developers")
    parser.add_argument(
        "--date",
        type=iso_date,
        metavar="YYYY-MM-DD",
        default=datetime.now(UTC).date(),
        help="default: today (UTC)",
    )
    parser.add_argument("--status", choices=STATUSES, default=STATUSES[0])
    parser.add_argument(
        "--number", type=proposal_number, metavar="N", help="default: one more than the highest"
    )
    parser.add_argument(
        "--output", metavar="DIR", default=str(HERE), help="default: the folder of this tool"
    )
    return parser.parse_args(arguments)


def tell(path: Path) -> None:
    """Print the path as well as stdout can take it: by now the proposal exists."""
    if not isinstance(sys.stdout, io.TextIOWrapper):
        return  # closed by the caller
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        print(path, flush=True)
    except OSError as problem:
        print(f"new.py: made {path}, but stdout fails: {problem.strerror}", file=sys.stderr)
        # What could not be written is tried again at exit, and would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: Sequence[str] | None = None) -> int:
    """The tool; returns 0, or 2 after a message on stderr."""
    options = parse(arguments)
    try:
        path = create(options)
    except ProposalError as problem:
        print(f"new.py: error: {problem}", file=sys.stderr)
        return 2
    except OSError as problem:
        where = problem.filename2 or problem.filename or options.output
        print(f"new.py: error: nothing was changed: {where}: {problem.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    tell(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
