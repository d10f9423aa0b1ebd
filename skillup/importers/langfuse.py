"""Langfuse's dataset items: a message, what is expected, and the conversation before it."""

from __future__ import annotations

from skillup.importers.source import SourceValue
from skillup.importers.write import CaseDraft, SuiteDraft
from skillup.load.datasets import EXPECTED, HISTORY, MESSAGE, NotAnItemError, read_item

_OF_A_MESSAGE = ("role", "content", "message_index", "tool_calls", "tool_call_id")


def convert(tops: list[SourceValue]) -> SuiteDraft:
    """The dataset in `tops`: a list of items, an export of the API, or an item for each."""
    draft = SuiteDraft(tops[0].source.path.stem)
    for node in (item for top in tops for item in (top.get("items", "data") or top).elements()):
        if node.get("status").text().upper() == "ARCHIVED":
            node.drop("an archived item")
            continue
        draft.name = node.get("datasetName", "dataset_name").text() or draft.name
        draft.cases.append(_case(node, f"item-{len(draft.cases) + 1}"))
    return draft


def _case(node: SourceValue, default_id: str) -> CaseDraft:
    """As `cases.datasets` reads the item; what that looks at is used."""
    try:
        item = read_item(node.value, node.source.locate(node.loc)[0], default_id)
    except NotAnItemError as error:
        raise (node.get("input") or node).refuse(*error.args) from None
    given, metadata = node.get("input"), node.get("metadata")
    expected = node.get("expected_output", "expectedOutput")
    read = [node.get("id"), metadata.get("message_index"), metadata.get("tags")]
    read.append(given.inner(*MESSAGE))
    if item.expected is not None:
        read.append(expected.get(*EXPECTED) or expected)
    for message in [*given.get(*HISTORY).elements(), *metadata.get(*HISTORY).elements()]:
        read += [message.get(key) for key in _OF_A_MESSAGE]
    for value in read:
        value.use()
    case = CaseDraft(node, item.id, tags=item.tags, message_index=item.message_index)
    case.turns.append({"content": item.query, "expected_output": item.expected or ""})
    case.history, case.system = item.history, item.system or ""
    return case
