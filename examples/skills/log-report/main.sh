#!/bin/bash
# Counts the levels of all logs and collects the errors.
set -e
cat "$SANDBOX_INPUT_DIR"/* > /tmp/all.log
awk '$2 == "ERROR"' /tmp/all.log | sort > "$SANDBOX_FILES_DIR/errors.log"
files=$(ls "$SANDBOX_INPUT_DIR" | wc -l)
awk '{ count[$2]++ } END { for (level in count) print level, count[level] }' /tmp/all.log | sort |
    jq -R 'split(" ") | {(.[0]): (.[1] | tonumber)}' |
    jq -s --argjson files "$files" '{files: $files, levels: (add // {})}' > "$SANDBOX_OUTPUT"
echo "read $files files"
