"""Waits."""
import json
import os
import time

seconds = json.loads(os.environ["SANDBOX_INPUT"]).get("seconds", 0.1)
print(f"waiting for {seconds} s", flush=True)
time.sleep(seconds)
with open(os.environ["SANDBOX_OUTPUT"], "w") as file:
    json.dump({"waited": seconds}, file)
