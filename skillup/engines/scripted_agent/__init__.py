"""The agent that the `scripted` engine drives: a small CLI agent whose model is a script.

Everything else about it is real: a process of its own, sessions in files that a later process
resumes, a shell, file tools, skills, permissions, a stream of events. It imports nothing outside
the standard library and little inside it, because an evaluation starts it dozens of times.

    python -m skillup.engines.scripted_agent --script=FILE --home=DIR
        (--session-id=ID | --resume=ID) < message

The working directory is the workspace. FILE is a JSON dump of
:class:`skillup.schema.profile.Script`; beside ``replies`` it may have ``permission``, ``model``,
``system`` (added instructions), ``max_turns`` (the most steps in this turn), and what decides the
chances: ``seed`` and ``attempt`` (of the trial, from 1).

**Events**, one JSON object a line on stdout, ``type`` first::

    session_started  session_id, agent_version, model, permission, turn, skills: [name]
    message          text                              said on the way, or the answer
    tool_call        id, name, input                   shell {command}, write_file {path, content},
                                                       read_file {path}, skill {skill}
    tool_result      id, status: success|error, output
    usage            input_tokens, cached_input_tokens, output_tokens, requests
    result           session_id, answer, is_error, error: null | {kind, message}; always the last

An error's ``kind`` is one of ``auth``, ``rate_limit``, ``quota``, ``overloaded``,
``model_error``, ``max_turns``, ``session_lost``, ``session_mismatch``, ``script``.

**Exit codes**: 0 answered; 1 the result is an error; 2 wrong arguments or script file; 130 SIGINT.

**Sessions** are kept in ``HOME/sessions/ID.jsonl``, which only ever grows, and
is synced before the result is printed.
"""

VERSION = "1.0.0"
