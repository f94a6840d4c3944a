"""An agent loop: a model requests tools, the sandbox runs them. The model is scripted here, so that the example runs anywhere."""

from sandlite import Sandbox
from sandlite.anthropic import SandboxTools

# What a model would answer, turn by turn.
SCRIPT = [
    {"name": "write_file", "input": {"path": "fib.py", "content": "a, b = 0, 1\nfor _ in range(9):\n    a, b = b, a + b\nprint(a)\n"}},
    {"name": "bash", "input": {"command": "python3 fib.py"}},
    {"name": "kv_set", "input": {"key": "answer", "value": 34}},
]


def model(turn: int, messages: list) -> dict:
    """A model's next message: calls of tools, or text when it is done."""
    if turn == len(SCRIPT):
        return {"role": "assistant", "content": [{"type": "text", "text": "the ninth Fibonacci number is 34"}]}
    return {"role": "assistant", "content": [{"type": "tool_use", "id": f"call-{turn}", **SCRIPT[turn]}]}


with Sandbox() as box:
    tools = SandboxTools(box, ["bash", "write_file", "kv_set"])
    messages: list = [{"role": "user", "content": "What is the ninth Fibonacci number?"}]
    for turn in range(10):
        # With a real model: client.messages.create(model=…, tools=tools.tools, messages=messages)
        message = model(turn, messages)
        messages.append(message)
        calls = [block for block in message["content"] if block["type"] == "tool_use"]
        if not calls:
            print(message["content"][0]["text"])
            break
        answers = [tools.dispatch(call) for call in calls]
        for call, answer in zip(calls, answers):
            print(f"{call['name']}: {answer['content']}")
        messages.append({"role": "user", "content": answers})
    print("kept:", box.kv.get("answer"))
