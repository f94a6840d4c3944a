"""Writes its output, complains, and fails."""
import json
import os
import sys

code = json.loads(os.environ["SANDBOX_INPUT"]).get("code", 1)
with open(os.environ["SANDBOX_OUTPUT"], "w") as file:
    json.dump({"reached": "the end"}, file)
print("about to fail")
print(f"failing with {code}", file=sys.stderr)
sys.exit(code)
