"""Sessions of a shell and of Python that keep their state, an independent fork, and a snapshot that continues elsewhere."""

from sandlite import Sandbox

with Sandbox() as box:
    session = box.session("work")
    session.bash("cd /tmp && export NAME=ada && greet() { echo \"hello $NAME from $PWD\"; }")
    print(session.bash("greet").stdout, end="")
    session.python("import math; numbers = [1, 4, 9]")
    print(session.python("print([math.isqrt(n) for n in numbers])").stdout, end="")

    with box.fork() as fork:
        fork.write_file("/tmp/plan", "B")
        print(box.exists("/tmp/plan"), fork.exists("/tmp/plan"))

    with Sandbox(snapshot=box.export_snapshot()) as copy:
        print(copy.session("work").bash("greet").stdout, end="")
