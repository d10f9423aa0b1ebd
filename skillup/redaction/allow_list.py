"""Values of credential variables that cannot be masked, because our own files are made of them.

A password ``completed`` would take the status out of every record, and ``2026-11`` its times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Any, get_args

# A date or a time, or the beginning of one, as ISO 8601 and file names have them; versions and
# numbers that are no longer than counts of tokens.
_TIME = re.compile(
    r"(19|20)\d\d[-/.]?[01]\d([-/.]?([0-3]\d?)?([T_ -]\d[\d:.]*(Z|[+-][\d:]*)?|[T_ -])?)?"
    r"|[0-2]?\d:[0-5]\d(:[0-5]\d)?[\d.]*(Z|[+-][\d:]+)?|[\d.:+-]{1,7}|\d+\.\d+\.\d+"
)

# Of files and streams that no model describes: run.json and its journal, engines and what their
# CLIs print, reports.
_MORE = """
    accepted acceptEdits additional_tools agent-color agent-name agent-setting
    agent_message_delta agent_nickname agent_path agent_reasoning_delta
    agent_reasoning_raw_content agent_reasoning_section_break agent_statuses agent_version
    agentId agents_killed aggregated_output ai-title aiTitle analyzer_model api_error_status
    api_refusal api_retry apiKeySource apiRefusalExplanation append arguments assistant
    attribution-snapshot auth.json auth_status authentication_failed away_summary
    background_event benchmark billing_error bridge-session bridge_status bypassPermissions
    cache_creation_input_tokens cache_read_input_tokens cache_write_input_tokens
    cacheCreationInputTokens cached_input_tokens cacheReadInputTokens call_history call_id
    callId case_decided case_digests check_address checkpoint.json classname
    claude-code claude_code_version
    claude_session claude_stream claudeMdExcludes cli_version close_agent closing_gracefully
    codex_exec codex_rollout collab_agent_interaction_end collab_agent_spawn_end
    collab_close_end collab_resume_end collab_tool_call collab_waiting_end command_execution
    commandMode commit compaction completed_at_ms content-replacement content_block_delta
    content_item_kinds content_items context.setup context_compacted control_cancel_request
    control_request control_response custom-title custom_tool_call_output customTitle
    danger-full-access declined developer_instructions directory duration_api_ms duration_ms
    dynamic_tool_call encoding end_turn entered_review_mode environment.setup_steps
    error_during_execution error_max_budget_usd error_max_turns errors_retried eval_id eval_name
    evals_run event_msg events.jsonl exec_command_output_delta executing executor_model
    exit_code exited_review_mode expectations failures file-history-snapshot file_change
    file_path file_text filename files_before files_persisted finished_at follow-up
    forked_from_id function_call_output ghost_snapshot grading.json grep_files
    guardian_assessment hidden_variables history_base history_mode hook_progress hook_response
    hook_started image_generation_call image_generation_end in_progress index.sqlite
    informational input_text inputTokens inter_agent_communication_metadata interrupted
    invalid_request invocation
    is_error isCompactSummary isError isMeta isolation isSidechain isVisibleInTranscriptOnly
    item.completed item.started item.updated item_completed item_started judge-answers
    judge-cache judge_cost_usd judge_model_fallback judgement.json
    keep_alive last-prompt last_token_usage leafUuid list_dir local_command local_shell_call
    logicalParentUuid max_cost_usd max_output_tokens mcp__unknown__tool mcp_servers
    mcp_tool_call mcp_tool_use memory_saved message_refused message_sent microcompact_boundary
    model_context_window model_not_found model_provider model_refusal_fallback modelUsage
    namespace new_string new_text no_judge_cache not_started notebook_path num_turns
    oauth_org_not_allowed old_string old_text options ordinal originator output_text
    outputTokens parent_tool_use_id parentUuid patch_apply paused payload permission-mode
    permission_denials permission_mode permission_retry permissionMode plan_update platform
    position post_turn_summary pr-link profiles prompt_suggestion properties property python
    question queue-operation queued_command rate_limit_event rate_limit_info rate_limit_wait
    rate_limits read-only reasoning_output_tokens Reconnecting... record.json record_set_aside
    record_type record_without_turns redacted_thinking relocated reports request_max_retries
    response_item responses result.json result_written results resume_agent resumed run.json
    run_created run_finished run_number run_reopened run_started run_summary running
    runs_per_configuration sample_size scheduled_task_fire scheduler schema_version scratch
    script.json scripted-agent send_input send_message sender_thread_id server_tool_use
    service_tier session_configured session_id session_meta session_started
    session_state_changed sessionId sessions shell_command sidechain skill_name skill_path
    skillup.checkpoint/1 skillup.grade/1 skillup.judgement/1 skillup.record/1 skillup.result/1
    skillup.run/1 skillup_version skipped slash_commands spawn_agent speculation-accept standard
    started_at_ms stddev stderr.txt stdout.jsonl stop_hook_summary stop_reason stop_sequence
    stream-json stream_error stream_event stream_max_retries sub-agent sub_agent_activity
    subagent subtype success summary_text system-err system-out task-notification task-summary
    task_complete task_notification task_progress task_started task_updated testcase testsuites
    text_elements thinking_tokens thread.started thread_goal_updated thread_name_updated
    thread_settings_applied thread_spawn time_seconds timestamp titles todo_list token_count
    token_usage_record tool_name tool_progress tool_result tool_search_call tool_search_output
    tool_use_summary total_cost_usd total_token_usage total_tokens trial_continued trial_finished
    trial_forked trial_graded trial_left trial_lost trial_not_continued trial_recorded trial_retried
    trial_sent trial_started trials_from_turn turn.completed turn.failed turn.started turn_aborted
    turn_complete turn_context turn_diff turn_duration turn_ended turn_finished turn_id turn_started
    turnId undo_completed undo_started unified_exec until_decided
    user_facing_hint user_message userType versions view_image_tool_call wait_agent waited
    web_search_begin web_search_call web_search_end wire_api workspace-write worktree-state
    world_state write_file write_stdin writes
"""


def is_ordinary(value: str) -> bool:
    """Whether it is part of a word of our files, or looks like a date, a time or a version."""
    return value in _words() or _TIME.fullmatch(value) is not None


@cache
def _words() -> str:
    # Imported so that their classes are known below as those that follow from Model.
    from skillup.schema.base import Model

    words = set(_MORE.split())
    for model in _models(Model):
        for name, field in model.model_fields.items():
            words |= {name, *([field.alias] if field.alias else [])}
            words.update(_choices(field.annotation))
    return "\n".join(sorted(words))


def _models(root: type[Any]) -> Iterator[type[Any]]:
    for model in root.__subclasses__():
        yield model
        yield from _models(model)


def _choices(annotation: Any) -> Iterator[str]:
    """The texts of every ``Literal`` and enumeration in it."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        yield from (str(one.value) for one in annotation)
    for part in get_args(annotation):
        if isinstance(part, str):
            yield part
        else:
            yield from _choices(part)
