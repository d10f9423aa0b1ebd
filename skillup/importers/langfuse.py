"""Langfuse dataset items: a message, what is expected, and the conversation before it."""

from __future__ import annotations

from skillup.errors import InvalidFilesError, Problem
from skillup.importers.source import SourceFile
from skillup.importers.values import SourceValue
from skillup.importers.write import CaseDraft, SuiteDraft
from skillup.load.datasets import (
    EXPECTED,
    HISTORY,
    MESSAGE,
    OF_A_MESSAGE,
    SYSTEM,
    NotAnItemError,
    read_item,
)
from skillup.schema.templates import escape

_ORIGINS = (
    "createdAt", "updatedAt", "datasetId", "sourceTraceId", "sourceObservationId", "created_at",
    "updated_at", "dataset_id", "source_trace_id", "source_observation_id",
)  # fmt: skip
EXPLANATIONS = {
    **dict.fromkeys(_ORIGINS, "left out: it says where the item came from"),
    "meta": "left out: it counts pages",
}


def convert(sources: list[SourceFile]) -> SuiteDraft:
    """The dataset in `sources`: a list of items, an export of the API, or a line for each item."""
    draft = SuiteDraft("")
    problems: list[Problem] = []
    tops = [SourceValue.top(source) for source in sources]
    for node in [item for top in tops for item in (top.get("items", "data") or top).elements()]:
        if node.get("status").text().upper() == "ARCHIVED":
            node.drop("an archived item")
            continue
        draft.name = node.get("datasetName", "dataset_name").text() or draft.name
        try:
            draft.cases.append(_case(node, f"item-{len(draft.cases) + 1}"))
        except NotAnItemError as error:
            problems.append((node.get("input") or node).problem(*error.args))
    if problems:
        raise InvalidFilesError(problems)
    draft.name = draft.name or sources[0].path.stem
    return draft


def _case(node: SourceValue, default_id: str) -> CaseDraft:
    """As `cases.datasets` reads the item; what that looks at is used."""
    item = read_item(node.value, node.source.locate(node.loc)[0], default_id)
    given, metadata = node.get("input"), node.get("metadata")
    expected = node.get("expected_output", "expectedOutput")
    used = [node.get("id"), metadata.get("message_index"), metadata.get("tags")]
    for place in (given, metadata):
        used.append(place.get(*SYSTEM))
        for message in place.get(*HISTORY).elements():
            used += [inner for key, inner in message.items() if key in OF_A_MESSAGE] or [message]
    used += [given.get(*MESSAGE) if isinstance(given.value, dict) else given]
    used += [expected.get(*EXPECTED) or expected]
    for value in used:
        value.use()
    before = item.message_index
    history = [
        message
        for place, message in enumerate(item.history)
        if before is None or message.get("message_index", place) < before
    ]
    case = CaseDraft(node, item.id, tags=[*item.tags, *metadata.get("tag").texts()])
    case.turns.append({"content": escape(item.query), "expected_output": item.expected or ""})
    case.history, case.system = history, item.system or ""
    case.title = metadata.get("title", "name").text()
    case.description = metadata.get("description").text()
    if len(history) < len(item.history):
        what = "messages of the history from the one under test on"
        metadata.get(*HISTORY).lost(what)
    return case
