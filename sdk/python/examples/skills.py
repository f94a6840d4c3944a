"""A skill: pushed once, found by name, run on JSON, and shown to a sandbox as files."""

from sandlite import Sandbox, Skills

SKILL = {
    "SKILL.md": """---
name: word-counter
description: Counts words. Use it when the user asks how long a text is.
input_schema:
  type: object
  required: [text]
  properties:
    text: {type: string}
---
Give `text`; the output has `words`.
""",
    "scripts/main.py": """import json, os
words = json.loads(os.environ["SANDBOX_INPUT"])["text"].split()
json.dump({"words": len(words)}, open(os.environ["SANDBOX_OUTPUT"], "w"))
open(os.environ["SANDBOX_FILES_DIR"] + "sorted.txt", "w").write(" ".join(sorted(words)))
""",
}

skills = Skills(":memory:")
skills.push(SKILL)

result = skills.run("word-counter", {"text": "to be or not to be"})
print(result.status, result.output, result.read("sorted.txt").decode())

wrong = skills.run("word-counter", {"txt": "oops"})
print(wrong.status, wrong.error)

[tool] = skills.tools()
print(tool.name, tool.answer({"text": "one two three"}).text)

with Sandbox(mounts=[skills.mount()]) as box:
    print(box.bash("cat /skills/*/SKILL.md | head -n 3 | tail -n 1").stdout, end="")
