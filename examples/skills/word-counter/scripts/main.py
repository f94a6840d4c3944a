"""Counts words."""
import collections
import json
import os
import re

data = json.loads(os.environ["SANDBOX_INPUT"])
words = re.findall(r"\w+", data["text"].lower())
counts = collections.Counter(words)
top = [{"word": word, "count": count} for word, count in counts.most_common(data.get("top_n", 10))]
with open(os.environ["SANDBOX_OUTPUT"], "w") as file:
    json.dump({"total_words": len(words), "unique_words": len(counts), "top_words": top}, file)
