"""One CSV file for each value of a field."""
import collections
import csv
import json
import os
import re

data = json.loads(os.environ["SANDBOX_INPUT"])
root = os.environ["SANDBOX_FILES_DIR"]
parts = collections.defaultdict(list)
for record in data["data"]:
    parts[re.sub(r"\W+", "_", str(record.get(data["by"], "none")))].append(record)
os.makedirs(os.path.join(root, "parts"))
for name, records in parts.items():
    with open(os.path.join(root, "parts", f"{name}.csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(records[0]))
        writer.writeheader()
        writer.writerows(records)
counts = {f"parts/{name}.csv": len(records) for name, records in sorted(parts.items())}
for path in (os.path.join(root, "index.json"), os.environ["SANDBOX_OUTPUT"]):
    with open(path, "w") as file:
        json.dump({"parts": counts}, file)
