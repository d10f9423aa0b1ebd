"""The trial's directory: prepared, looked at after each turn, compared, copied.

prepare_workspace(context, ...) -> PreparedWorkspace | TurnError
take_snapshot(root, blobs, previous) -> Snapshot
diff_snapshots(before, after, blobs) -> WorkspaceChanges
copy_workspace(source, destination)
skill_problem(directory), skill_name(directory)    what validation asks of a skill
"""

from __future__ import annotations

from skillup.workspace.blobs import BlobStore
from skillup.workspace.globs import matches_any_glob, matches_glob
from skillup.workspace.prepare import PreparedWorkspace, prepare_workspace
from skillup.workspace.skills import (
    InstalledSkill,
    SkillToInstall,
    install_skill,
    skill_name,
    skill_problem,
    unusable,
)
from skillup.workspace.snapshot import Snapshot, SnapshotLimits, diff_snapshots, take_snapshot
from skillup.workspace.trees import copy_workspace

__all__ = [
    "BlobStore",
    "InstalledSkill",
    "PreparedWorkspace",
    "SkillToInstall",
    "Snapshot",
    "SnapshotLimits",
    "copy_workspace",
    "diff_snapshots",
    "install_skill",
    "matches_any_glob",
    "matches_glob",
    "prepare_workspace",
    "skill_name",
    "skill_problem",
    "take_snapshot",
    "unusable",
]
