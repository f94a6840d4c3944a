"""Limits: a preset for the sandbox, a shorter time for one command. A command that meets one is a result, not a crash."""

from sandlite import LimitError, Sandbox

with Sandbox(preset="strict") as box:
    print({name: box.limits[name] for name in ("wall", "memory", "disk")})

    result = box.bash("echo working; while :; do :; done", timeout=0.3)
    print(result.stdout.strip(), "/", result.limit.name if result.limit else None, "/", bool(result))

    # The file changes of a command that fails can be rolled back.
    box.write_file("plan", "A")
    box.bash("echo B > plan; while :; do :; done", timeout=0.3, rollback_on_failure=True)
    print("plan:", box.read_file("plan"))

    try:
        box.python("x = bytearray(10**12)", check=True)
    except LimitError as error:
        print("limit:", error.result.limit.name if error.result.limit else None)
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[-1])

    info = box.info()
    print("used:", info.used["disk"], "of", info.allowed["disk"], "bytes")
