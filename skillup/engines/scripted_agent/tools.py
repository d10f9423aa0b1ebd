"""What the agent can do: each tool really does it and says what came of it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_REFUSED_UNDER = {"write_file": ("read_only",), "shell": ("read_only", "edits")}


class ToolError(Exception):
    """The tool could not do it; the agent is told and goes on."""


class Tools:
    """The tools, as far as the permission level lets them be used."""

    def __init__(self, permission: str, skills: Mapping[str, str], scratch: str) -> None:
        self._permission = permission
        self._skills = skills
        self._scratch = scratch
        self.shell_group: int | None = None
        """The process group of the command that is running."""

    def use(self, name: str, arguments: Mapping[str, str]) -> str:
        """The tool's output. Raises ToolError."""
        if self._permission in _REFUSED_UNDER.get(name, ()):
            raise ToolError(f"{name} is not permitted: the permission is {self._permission}")
        try:
            if name == "shell":
                return self._shell(arguments["command"])
            if name == "write_file":
                return self._write(arguments["path"], arguments["content"])
            if name == "read_file":
                return _text(arguments["path"])
            return self._skill(arguments["skill"])
        except OSError as error:
            subject = arguments.get("path", error.filename)
            raise ToolError(f"{subject}: {error.strerror or error}") from error
        except ValueError as error:  # a NUL byte in a path or a command
            raise ToolError(str(error)) from error

    def _write(self, path: str, content: str) -> str:
        target, workspace = os.path.realpath(path), os.path.realpath(".")
        inside = target.startswith(os.path.join(workspace, ""))
        if self._permission != "full" and not inside:
            raise ToolError(f"{path} is outside the workspace")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(content)
        return f"wrote {path}"

    def _skill(self, name: str) -> str:
        if name not in self._skills:
            known = ", ".join(self._skills) or "none"
            raise ToolError(f"no skill {name} is installed (installed: {known})")
        return _text(self._skills[name])

    def _shell(self, command: str) -> str:
        """Runs a command in a session of its own, as other agents do.

        Its output goes through a file, not a pipe: a child that it leaves in the background keeps
        a pipe open, and reading would not end.
        """
        import subprocess

        with open(self._scratch, "w+b") as output:
            shell = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self.shell_group = shell.pid
            code = shell.wait()
            self.shell_group = None
            output.seek(0)
            text = output.read().decode("utf-8", "replace").rstrip("\n")
        os.unlink(self._scratch)
        if code != 0:
            raise ToolError(f"exit code {code}\n{text}".rstrip("\n"))
        return text


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        return file.read().rstrip("\n")
