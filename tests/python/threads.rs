//! Threads take turns: one runs while another waits.

use super::{check, check_error, python, texts};

#[test]
fn started_threads_end_before_join_returns() {
    check(
        "import threading\n\
         done = []\n\
         threads = [threading.Thread(target=done.append, args=(n,)) for n in range(4)]\n\
         for thread in threads: thread.start()\n\
         for thread in threads: thread.join()\n\
         print(done, [thread.is_alive() for thread in threads], threading.active_count())\n\
         threading.Thread(target=print, args=('at the end',)).start()\n",
        "[0, 1, 2, 3] [False, False, False, False] 1\nat the end\n",
    );
}

#[test]
fn executors_return_results_and_exceptions() {
    check(
        "from concurrent.futures import ThreadPoolExecutor, as_completed\n\
         with ThreadPoolExecutor(3) as pool:\n    \
             print(list(pool.map(abs, [-1, -2, -3])))\n    \
             print(sorted(future.result() for future in as_completed(pool.submit(pow, 2, n) for n in range(5))))\n    \
             first = pool.submit(int, '7')\n    \
             print(pool.submit(lambda: first.result() + 1).result(), repr(pool.submit(lambda: 1 / 0).exception()))\n",
        "[1, 2, 3]\n[1, 2, 4, 8, 16]\n8 ZeroDivisionError('division by zero')\n",
    );
}

#[test]
fn a_worker_that_waits_for_a_queue_continues_when_it_is_needed() {
    check(
        "import queue, threading\n\
         work = queue.Queue(maxsize=2)\n\
         def worker():\n    \
             while (item := work.get()) is not None:\n        \
                 print('got', item)\n        \
                 work.task_done()\n    \
             print('no more')\n\
         thread = threading.Thread(target=worker)\n\
         thread.start()\n\
         for item in range(3): work.put(item)\n\
         work.join()\n\
         print('joined')\n\
         work.put(None)\n\
         thread.join()\n",
        "got 0\ngot 1\ngot 2\njoined\nno more\n",
    );
}

#[test]
fn locks_conditions_barriers_and_timers_work() {
    check(
        "import threading, time\n\
         condition, items, passed = threading.Condition(), [], []\n\
         def consume():\n    \
             with condition:\n        \
                 while not items: condition.wait()\n        \
                 print('consumed', items.pop())\n\
         consumer = threading.Thread(target=consume)\n\
         consumer.start()\n\
         with condition:\n    \
             items.append(5)\n    \
             condition.notify()\n\
         consumer.join()\n\
         barrier = threading.Barrier(3)\n\
         parties = [threading.Thread(target=lambda: (barrier.wait(), passed.append(1))) for _ in range(3)]\n\
         for party in parties: party.start()\n\
         for party in parties: party.join()\n\
         lock = threading.Lock()\n\
         print(len(passed), lock.acquire(), lock.acquire(timeout=0.01), lock.acquire(False))\n\
         late = threading.Timer(60, print, ['never'])\n\
         late.start()\n\
         soon = threading.Timer(0.01, print, ['soon'])\n\
         soon.start()\n\
         time.sleep(0.05)\n\
         late.cancel()\n",
        "consumed 5\n3 True False False\nsoon\n",
    );
}

#[test]
fn a_thread_that_waits_to_be_stopped_ends() {
    check(
        "import threading, time\n\
         stop, ticks = threading.Event(), []\n\
         def tick():\n    \
             while not stop.is_set():\n        \
                 ticks.append(1)\n        \
                 time.sleep(0.01)\n\
         thread = threading.Thread(target=tick)\n\
         thread.start()\n\
         time.sleep(0.05)\n\
         stop.set()\n\
         thread.join()\n\
         print(len(ticks) > 2)\n",
        "True\n",
    );
}

#[test]
fn a_thread_that_cannot_continue_raises_an_error() {
    let output = python(
        "import threading\n\
         ours, theirs = threading.Event(), threading.Event()\n\
         def answer():\n    ours.wait()\n    theirs.set()\n    ours.clear()\n    ours.wait()\n\
         thread = threading.Thread(target=answer)\n\
         thread.start()\n\
         ours.set()\n\
         theirs.wait()\n\
         print('answered')\n",
    );
    let (stdout, stderr) = texts(&output);
    assert_eq!(stdout, "answered\n");
    assert!(
        stderr.ends_with("RuntimeError: this thread waits for one that waits for it: threads take turns in the sandbox\n"),
        "{stderr}"
    );
    check_error(
        "import threading\nlock = threading.Lock()\nthreading.Thread(target=len, args=('',)).start()\nlock.acquire()\nlock.acquire()",
        "RuntimeError: all threads wait for each other",
    );
}

#[test]
fn asyncio_runs_threads_and_programs() {
    check(
        "import asyncio\n\
         from asyncio.subprocess import PIPE\n\
         async def main():\n    \
             print(await asyncio.gather(asyncio.to_thread(pow, 2, 3), asyncio.get_running_loop().run_in_executor(None, abs, -1)))\n    \
             child = await asyncio.create_subprocess_shell('echo out; echo err >&2; exit 3', stdout=PIPE, stderr=PIPE)\n    \
             print(await child.communicate(), child.returncode)\n    \
             child = await asyncio.create_subprocess_exec('cat', stdin=PIPE, stdout=PIPE)\n    \
             print(len((await child.communicate(b'x' * 200_000))[0]))\n\
         asyncio.run(main())\n",
        "[8, 1]\n(b'out\\n', b'err\\n') 3\n200000\n",
    );
}
