import json
from pathlib import Path

import pytest

from warmset.errors import InputError
from warmset.trace.chat_template import ChatTemplate, TemplateFailedError, find_template
from warmset.trace.prompt import Prompt

NOON_2026_02_26_MS = 1_772_107_200_000  # date -u -d 2026-02-26T12:00:00Z +%s


def rendered(source: str, *messages, tools=(), special_tokens=None) -> str:
    template = ChatTemplate({"default": source}, special_tokens or {})
    return template.render(
        Prompt(place="log:1", arrival_ms=NOON_2026_02_26_MS, messages=messages, tools=tools)
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ bos_token }}{{ messages[0]['content'] }}", "<s>hi"),
        ("{{ messages[0].content }}{% if add_generation_prompt %}!{% endif %}", "hi!"),
        ("{{ strftime_now('%d %b %Y') }}", "26 Feb 2026"),  # the day of the request, not of the import
        ("{% generation %}{{ messages[0].content }}{% endgeneration %}", "hi"),
        ("{% for m in messages %}{{ m.content }}{% break %}{% endfor %}", "hi"),
        ("{% if tools is none and documents is none %}none{% endif %}", "none"),
        ("{%- if true %}\n  x\n{%- endif %}", "  x"),  # trim_blocks takes the newline behind a tag
    ],
)
def test_templates_have_what_transformers_gives_them(source, expected):
    assert (
        rendered(source, {"role": "user", "content": "hi"}, special_tokens={"bos_token": "<s>"}) == expected
    )


def test_tools_are_written_as_python_writes_json():
    tool = {"name": "é", "parameters": {"b": [1, "<"], "a": None}}
    source = "{{ tools[0] | tojson }} {{ tools[0].parameters | tojson(indent=1) }}"
    expected = '{"name": "é", "parameters": {"b": [1, "<"], "a": null}} ' + json.dumps(
        tool["parameters"], indent=1
    )
    assert rendered(source, {"role": "user", "content": ""}, tools=[tool]) == expected


def test_arguments_of_tool_calls_reach_the_template_as_objects():
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    source = "{{ messages[0].tool_calls[0].function.arguments.x + 1 }}{{ messages[0].content }}"
    assert rendered(source, {"role": "assistant", "content": None, "tool_calls": [call]}) == "2"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ messages[0].content }}", "one\ntwo"),
        ("{% if 'o' in messages[0].content %}{{ messages[0].content }}{% endif %}", "one\ntwo"),
        ("{% for part in messages[0].content %}[{{ part.text }}]{% endfor %}", "[one][two]"),
        (
            "{% for m in messages %}{% for p in m['content'] %}[{{ p.text }}]{% endfor %}{% endfor %}",
            "[one][two]",
        ),
    ],
)
def test_content_parts_are_joined_unless_the_template_loops_over_them(source, expected):
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert rendered(source, {"role": "user", "content": parts}) == expected


@pytest.mark.parametrize(
    "source",
    [
        "{{ raise_exception('no') }}",
        "{{ messages[9].content.x }}",
        "{{ 1 / 0 }}",
        "{{ 'x' + 1 }}",
        "{{ messages.append(1) }}",  # the sandbox
        "{{ messages.__class__.__mro__ }}",
    ],
)
def test_what_a_template_cannot_do_is_a_failure_without_text(source):
    with pytest.raises(TemplateFailedError, match=r"^the chat template (refuses|breaks on) it \(\w+\)$"):
        rendered(source, {"role": "user", "content": "hi"})


def test_a_folder_without_a_template_has_none(tmp_path: Path):
    (tmp_path / "tokenizer_config.json").write_text('{"bos_token": "<s>"}')
    assert find_template(tmp_path) is None


@pytest.mark.parametrize(
    ("config", "tools", "expected"),
    [
        ({"chat_template": "{{ eos_token }}", "eos_token": {"content": "</s>", "special": True}}, [], "</s>"),
        (
            {"chat_template": [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]},
            [],
            "d",
        ),
        (
            {"chat_template": [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]},
            [{}],
            "t",
        ),
        ({"chat_template": [{"name": "default", "template": "d"}]}, [{}], "d"),
    ],
)
def test_templates_of_a_tokenizer_config(tmp_path: Path, config, tools, expected):
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    template = find_template(tmp_path)
    assert template is not None
    assert template.render(Prompt(place="", arrival_ms=0, tools=tools)) == expected


def test_a_template_file_goes_before_the_config(tmp_path: Path):
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "config", "eos_token": "E"}')
    (tmp_path / "chat_template.jinja").write_text("file{{ eos_token }}")
    template = find_template(tmp_path)
    assert template is not None
    assert template.render(Prompt(place="", arrival_ms=0)) == "fileE"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("chat_template.jinja", b"{% for %}", r"chat_template\.jinja: line 1 of the chat template is wrong"),
        ("chat_template.jinja", b"\xff", r"chat_template\.jinja: cannot be read"),
        ("tokenizer_config.json", b"{", r"tokenizer_config\.json: cannot be read"),
        (
            "tokenizer_config.json",
            b'{"chat_template": 3}',
            "neither a text nor a list with one named default",
        ),
    ],
)
def test_a_broken_template_is_refused_and_not_ignored(tmp_path: Path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        find_template(tmp_path)
