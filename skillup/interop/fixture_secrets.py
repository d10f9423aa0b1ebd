"""What of a workspace looks like a secret, by its name or by what is in it."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from pathlib import Path

from skillup.process.secrets import Secrets

_NAMES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "id_rsa*", "id_dsa*"),
    *("id_ecdsa*", "id_ed25519*", "*credential*", "*secret*", "auth.json", ".git-credentials"),
    *(".aws", ".ssh", ".gnupg", ".docker", ".kube", ".azure", "*.tfstate", "*.tfvars"),
)
_HARMLESS = ("*.example", "*.sample", "*.template", "*.dist")

# The forms that issuers give their keys so that they are found; shorter ones are talk about keys.
_KEY = re.compile(
    rb"""(?<![A-Za-z0-9])(?:
        sk-(?:ant|proj|svcacct|admin|or)-[A-Za-z0-9_-]{8,}   # Anthropic, OpenAI, OpenRouter
        | sk-[A-Za-z0-9]{32,}                                # OpenAI's first form, and many others
        | (?:AKIA|ASIA)[0-9A-Z]{16}                          # AWS
        | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,}
        | glpat-[A-Za-z0-9_-]{20,}
        | xox[abeprs]-[A-Za-z0-9-]{10,}                      # Slack
        | AIza[A-Za-z0-9_-]{35}                              # Google
        | [rs]k_live_[A-Za-z0-9]{16,}                        # Stripe
        | npm_[A-Za-z0-9]{36} | pypi-[A-Za-z0-9_-]{50,} | hf_[A-Za-z0-9]{30,}
    ) | -----BEGIN\ (?:[A-Z0-9]+\ )*PRIVATE\ KEY""",
    re.VERBOSE,
)


def is_named_as_secret(path: str) -> bool:
    """Whether a part of the relative `path` is a name that files with secrets have."""
    for part in path.casefold().split("/"):
        if any(fnmatch.fnmatchcase(part, harmless) for harmless in _HARMLESS):
            continue
        if any(fnmatch.fnmatchcase(part, secret) for secret in _NAMES):
            return True
    return False


class KeyFinder:
    """Knows a key when it sees one: by its form, or as the value of a credential variable."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._secrets = Secrets.from_environment(environment)

    def is_in(self, file: Path) -> bool:
        """Whether there is one in the file, which is read whole. Raises OSError."""
        # As UTF-16 has it, too.
        data = file.read_bytes().replace(b"\0", b"")
        return _KEY.search(data) is not None or self._secrets.mask_bytes(data) != data
