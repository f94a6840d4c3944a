"""The sentences whose words are the most frequent ones, in the order of the text."""
import collections
import json
import os
import re

COMMON = set("a an and are as at be by for from has he in is it its of on or that the this to was were will with".split())

data = json.loads(os.environ["SANDBOX_INPUT"])
sentences = [part.strip() for part in re.split(r"(?<=[.!?])\s+", data["text"]) if part.strip()]
words = re.findall(r"\w+", data["text"].lower())
weights = collections.Counter(word for word in words if word not in COMMON)


def score(sentence):
    found = [word for word in re.findall(r"\w+", sentence.lower()) if word not in COMMON]
    return sum(weights[word] for word in found) / (len(found) or 1)


best = sorted(range(len(sentences)), key=lambda at: (-score(sentences[at]), at))[: data.get("max_sentences", 3)]
output = {
    "summary": " ".join(sentences[at] for at in sorted(best)),
    "sentence_count": len(sentences),
    "word_count": len(words),
}
with open(os.environ["SANDBOX_OUTPUT"], "w") as file:
    json.dump(output, file)
