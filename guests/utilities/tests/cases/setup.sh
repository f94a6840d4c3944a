# Made in an empty directory before each case, with the real tools.
printf 'one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve\n' > lines
printf 'b 2\na 10\nc 1\na 2\nB 3\n\n' > pairs
printf 'apple:3:red\nbanana:1:yellow\ncherry:2:red\nno delimiter\n' > fields
printf 'x\x01y\tz\xff\x80\n\n\n\nend' > odd
printf 'a\na\nb\nB\nb\nc\nc\n' > dups
printf '1\n3\n5\n7\n' > s1
printf '1\n2\n3\n8\n' > s2
printf '' > empty
mkdir -p d/sub; echo hi > d/f; echo deep > d/sub/g; ln -s f d/link; ln -s nowhere d/dangling
printf '#!/bin/sh\necho run\n' > script; chmod 755 script
printf 'The quick brown fox jumps over the lazy dog. Pack my box with five dozen liquor jugs.\n\n  Indented paragraph that goes on for a while, with several words to wrap.\n' > prose
touch -d '2020-01-02 03:04:05' old; touch -d '2021-06-07 08:09:10.5' newer
touch -d '2019-12-31 23:59:59' lines pairs fields odd dups s1 s2 empty prose script
touch -h -d '2019-12-31 23:59:59' d/link d/dangling; touch -d '2019-12-31 23:59:59' d/sub/g d/f d/sub d
chmod 640 fields; chmod 4755 script
