//! Files are rows: they survive commands, and bash and the library see the same ones.

use runtime::Sandbox;

use super::{check, host, sandbox};

#[test]
fn a_file_survives_to_the_next_command() {
    let sandbox = sandbox();
    sandbox.bash("mkdir -p a/b; echo deep > a/b/c").unwrap();
    assert_eq!(sandbox.bash("cat a/b/c; ls a").unwrap().stdout, b"deep\nb\n");
}

#[test]
fn a_file_survives_to_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.db");
    let open = || Sandbox::builder().host(host()).database(&path).open().unwrap();
    open().bash("echo kept > ~/file").unwrap();
    assert_eq!(open().bash("cat ~/file").unwrap().stdout, b"kept\n");
    assert_eq!(open().history(10).unwrap().len(), 2);
}

#[test]
fn files_given_from_outside_are_there() {
    let sandbox = Sandbox::builder().host(host()).file("/src/main.py", "print(1)\n").open().unwrap();
    assert_eq!(sandbox.bash("wc -c < /src/main.py").unwrap().stdout, b"9\n");
}

#[test]
fn an_unlinked_file_stays_readable_while_it_is_open() {
    check("echo text > f; exec 5< f; rm f; cat <&5; ls", "text\n");
}

#[test]
fn devices_and_the_fixed_world_are_there() {
    check("head -c 3 /dev/zero | od -An -tx1; echo x > /dev/null; cat /dev/null; echo y > /dev/stdout", " 00 00 00\ny\n");
    check("test -x /bin/bash && test -x /usr/bin/tr && echo yes; cat /etc/hostname", "yes\nsandlite\n");
    check("echo via fd | cat /dev/fd/0", "via fd\n");
}

// T-ISO-02: the tree has no way out, and the fixed world cannot be written.
#[test]
fn there_is_no_way_out_of_the_tree() {
    check(
        "cd /; cd ../../..; pwd; ls -d /../../tmp; ln -s /../../etc l 2>/dev/null; cat l/hostname",
        "/\n/../../tmp\nsandlite\n",
    );
    check(
        "{ echo x > /bin/bash; } 2>/dev/null || echo refused; rm -f /etc/passwd 2>/dev/null || echo refused",
        "refused\nrefused\n",
    );
}
