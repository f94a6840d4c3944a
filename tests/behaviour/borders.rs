//! Rules hold at their borders, too: for other names of a file, for directories that move, for copies of a sandbox, and for what a
//! view could compute or have called.

use std::sync::atomic::{AtomicUsize, Ordering};

use runtime::actions::{Context, actions};
use runtime::{Builder, Content, Error, Keep, Policy, Preset, ProvidedNode, Provider, Sandbox, Side};
use serde_json::json;

use super::host;

fn builder() -> Builder {
    Sandbox::builder().host(host())
}

fn rules(rules: &[(&str, &str)]) -> Policy {
    let rule = |(path, access): &(&str, &str)| format!("[[rule]]\npath = \"{path}\"\naccess = \"{access}\"\n");
    Policy::parse(&rules.iter().map(rule).collect::<String>()).unwrap()
}

// T-POL-04.
#[test]
fn nothing_is_moved_over_another_name_of_a_hidden_file() {
    let owner = builder().file("/secret/key", "k3y").file("/free/f", "free").file("/free/d/x", "x").open().unwrap();
    owner.fs().hard_link("/secret/key", "/free/key").unwrap();
    let bound = owner.with_policy(rules(&[("/secret", "hidden")])).unwrap();
    assert!(!bound.fs().exists("/free/key").unwrap());
    for from in ["/free/f", "/free/d"] {
        let error = bound.fs().rename(from, "/free/key").unwrap_err();
        assert!(error.causes().join(": ").contains("denied"), "{error}");
        assert!(!bound.bash(format!("mv {from} /free/key")).unwrap().status.success(), "{from}");
        assert!(bound.fs().exists(from).unwrap(), "{from}");
        assert_eq!(owner.fs().read("/free/key").unwrap(), b"k3y");
    }
}

// T-POL-04.
#[test]
fn a_link_with_a_hidden_name_is_hidden_under_each_of_its_names() {
    let owner = builder().file("/secret/key", "k3y").file("/free/f", "free").open().unwrap();
    owner.fs().symlink("/where/it/is", "/secret/link").unwrap();
    owner.fs().hard_link("/secret/link", "/free/link").unwrap();
    let bound = owner.with_policy(rules(&[("/secret", "hidden")])).unwrap();
    assert_eq!(bound.fs().list("/free").unwrap().len(), 1);
    assert!(bound.fs().read_link("/free/link").is_err());
    assert_eq!(bound.bash("ls -A /free; readlink /free/link").unwrap().stdout, b"f\n");
    assert_eq!(owner.fs().read_link("/free/link").unwrap(), "/where/it/is");
}

// T-POL-01, T-POL-02, T-POL-05: moving a directory away, and another one into its place, would replace what is in it.
#[test]
fn a_directory_stays_where_it_is_with_a_file_that_has_to() {
    let owner = builder().file("/work/d/deep/audit.log", "first\n").file("/work/free/a", "a").open().unwrap();
    for access in ["append", "read"] {
        let bound = owner.with_policy(rules(&[("/work/**/audit.log", access)])).unwrap();
        for from in ["/work/d", "/work/d/deep"] {
            assert!(bound.fs().rename(from, "/work/away").is_err(), "{access} {from}");
            assert!(!bound.bash(format!("mv {from} /work/away")).unwrap().status.success(), "{access} {from}");
        }
        assert_eq!(owner.fs().read("/work/d/deep/audit.log").unwrap(), b"first\n");
        assert!(!owner.fs().exists("/work/away").unwrap(), "{access}");
        bound.fs().rename("/work/free", "/work/moved").unwrap();
        assert!(bound.bash("mv /work/moved /work/free").unwrap().status.success(), "{access}");
    }
    // What is hidden moves along, under the same rule.
    let bound = owner.with_policy(rules(&[("/work/**/audit.log", "hidden")])).unwrap();
    bound.fs().rename("/work/d", "/work/e").unwrap();
    assert_eq!(owner.fs().read("/work/e/deep/audit.log").unwrap(), b"first\n");
}

// T-POL-01, T-POL-02: an update replaces files below the view.
#[test]
fn an_update_replaces_nothing_that_has_to_stay() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base.db");
    let put = |text: &str| builder().database(&base).open().unwrap().fs().write("/work/log", text).unwrap();
    put("base\n");
    let owner = builder().base(&base).open().unwrap();
    owner.fs().append("/work/log", "own\n").unwrap();
    put("newer\n");
    let update = |rule| owner.with_policy(rules(&[rule])).unwrap().update("/", None, Some(Side::Theirs));
    assert!(matches!(update(("/work/log", "append")), Err(Error::Invalid(_))));
    assert!(matches!(update(("/work", "read")), Err(Error::Invalid(_))));
    assert_eq!(owner.fs().read("/work/log").unwrap(), b"base\nown\n");
    update(("/work", "write")).unwrap();
    assert_eq!(owner.fs().read("/work/log").unwrap(), b"newer\n");
}

// T-POL-01, T-POL-02, T-POL-03.
#[test]
fn links_are_read_and_space_is_allocated_as_the_rule_allows() {
    for (access, is_read, is_extended) in
        [("write", true, true), ("append", true, false), ("read", true, false), ("hidden", false, false)]
    {
        let owner = builder().file("/zone/f", "one\n").open().unwrap();
        owner.fs().symlink("f", "/zone/link").unwrap();
        let bound = owner.with_policy(rules(&[("/zone", access)])).unwrap();
        assert_eq!(bound.fs().read_link("/zone/link").is_ok(), is_read, "{access}");
        assert_eq!(bound.bash("readlink /zone/link").unwrap().stdout == b"f\n", is_read, "{access}");
        assert_eq!(bound.bash("fallocate -l 99 /zone/f").unwrap().status.success(), is_extended, "{access}");
        assert_eq!(owner.fs().read("/zone/f").unwrap().len(), if is_extended { 99 } else { 4 }, "{access}");
        // A link has times and an owner of its own.
        for script in ["touch -h -d @5 /zone/link", "chown -h 1000 /zone/link"] {
            assert_eq!(bound.bash(script).unwrap().status.success(), access == "write", "{script} under {access}");
        }
    }
}

#[test]
fn rules_hold_in_a_base_with_more_files_than_are_remembered() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base.db");
    let permissive = || builder().preset(Preset::Permissive);
    let files = (0..66_000).map(|number| (format!("/many/{number}"), Content::from(Vec::new())));
    permissive().database(&base).open().unwrap().fs().write_all(files.collect()).unwrap();
    let bound = permissive().base(&base).open().unwrap().with_policy(rules(&[("/many/7", "hidden")])).unwrap();
    // The directory itself, and all but one.
    assert_eq!(bound.fs().walk("/many").unwrap().len(), 66_000);
}

// T-POL-03.
#[test]
fn a_file_that_its_source_replaces_by_a_directory_is_under_the_rules_of_the_directory() {
    let calls = AtomicUsize::new(0);
    // It is called again when the directory is listed.
    let provider = Provider::directory(move |_| {
        let below = || ["secret", "other"].map(|name| (name, ProvidedNode::file(name)));
        let is_first = calls.fetch_add(1, Ordering::Relaxed) == 0;
        let node = if is_first { ProvidedNode::file("a file ") } else { ProvidedNode::directory(below()) };
        Ok(ProvidedNode::directory([("x", node)]))
    });
    let owner = builder().dynamic("/srv", provider).open().unwrap();
    let bound = owner.with_policy(rules(&[("/srv/x/secret", "hidden")])).unwrap();
    let output = bound.bash("cat /srv/x; ls /srv; cat /srv/x/secret /srv/x/other").unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a file x\nother", "{}", String::from_utf8_lossy(&output.stderr));
}

// T-POL-08.
#[test]
fn the_stored_policy_of_a_fork_is_its_own() {
    let sandbox = builder().file("/secret/key", "k3y").open().unwrap();
    sandbox.set_policy(Some(rules(&[("/secret", "hidden")]))).unwrap();
    let fork = sandbox.fork().unwrap();
    assert!(!fork.fs().exists("/secret/key").unwrap());
    fork.set_policy(None).unwrap();
    assert!(fork.fs().exists("/secret/key").unwrap());
    assert!(!sandbox.fs().exists("/secret/key").unwrap() && sandbox.policy().unwrap().is_some());
    sandbox.set_policy(Some(rules(&[("/secret", "read")]))).unwrap();
    assert!(fork.policy().unwrap().is_none() && fork.fs().write("/secret/key", "new").is_ok());
    assert!(sandbox.fs().write("/secret/key", "new").is_err());
}

// T-POL-08, T-REL-04.
#[test]
fn a_policy_that_another_process_stores_takes_effect_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let open = || builder().database(directory.path().join("a.db")).open().unwrap();
    // Two handles in one process are as far apart as two processes.
    let (one, other) = (open(), open());
    one.fs().write("/secret/key", "k3y").unwrap();
    let view = one.view("ann", [""; 0]).unwrap();
    let hidden = || Some(rules(&[("/secret", "hidden")]));
    other.set_policy(hidden()).unwrap();
    assert!(!one.fs().exists("/secret/key").unwrap() && !view.fs().exists("/secret/key").unwrap());
    assert_eq!((one.policy().unwrap(), one.owner().unwrap().fs().exists("/secret/key").unwrap()), (hidden(), true));
    other.set_policy(None).unwrap();
    // The first that notices is a command.
    assert_eq!(one.bash("cat /secret/key").unwrap().stdout, b"k3y");
    other.set_policy(hidden()).unwrap();
    assert_eq!(one.bash("cat /secret/key").unwrap().stdout, b"");
    assert!(one.info().is_err(), "a handle that does not see everything");
    one.set_policy(Some(rules(&[("/secret", "read")]))).unwrap();
    assert!(one.fs().exists("/secret/key").unwrap() && one.fs().write("/secret/key", "new").is_err());
}

// T-POL-07: names and messages of checkpoints are texts of their authors.
#[test]
fn a_view_sees_only_its_own_checkpoints() {
    let owner = builder().file("/f", "1").open().unwrap();
    let (ann, bob) = (owner.view("ann", [""; 0]).unwrap(), owner.view("bob", [""; 0]).unwrap());
    owner.bash("echo 2 > /f").unwrap();
    owner.versions().checkpoint("owners", Some("the key is k3y")).unwrap();
    ann.versions().checkpoint("anns", Some("by ann")).unwrap();
    let names = |sandbox: &Sandbox| -> Vec<String> {
        sandbox.versions().checkpoints().unwrap().into_iter().map(|label| label.name).collect()
    };
    assert_eq!(names(&owner).len(), 2);
    for (view, own) in [(&ann, &["anns"][..]), (&bob, &[][..])] {
        assert_eq!(names(view), own);
        assert_eq!(view.versions().show("HEAD").unwrap().version.unwrap().labels, own);
        let failed = |reference: &str| view.versions().resolve(reference).unwrap_err().to_string();
        assert_eq!(failed("owners"), failed("absent").replace("absent", "owners"));
        assert!(view.versions().show("owners~1").is_err() && !view.versions().remove_checkpoint("owners").unwrap());
    }
    assert!(owner.versions().resolve("owners").is_ok() && ann.versions().resolve("anns").is_ok());
    // A failed attempt does not make an author.
    assert!(bob.versions().checkpoint("anns", None).is_err());
    bob.fs().write("/b", "1").unwrap();
    assert_eq!(names(&bob), [""; 0]);
    assert!(ann.versions().remove_checkpoint("anns").unwrap());
    assert_eq!((names(&owner), names(&ann)), (vec!["owners".to_owned()], vec![]));
}

// T-POL-02: what cannot be overwritten cannot be forgotten.
#[test]
fn rules_that_keep_files_keep_their_past() {
    let owner = builder().file("/log", "1").open().unwrap();
    owner.bash("echo 2 >> /log").unwrap();
    owner.versions().checkpoint("named", None).unwrap();
    let keep = Keep { versions: Some(1), ..Keep::default() };
    for access in ["read", "append"] {
        let bound = owner.with_policy(rules(&[("/log", access)])).unwrap();
        for refused in [bound.versions().prune(&keep).err(), bound.versions().remove_checkpoint("named").err()] {
            let reason = "the policy makes some of the sandbox read-only or append-only";
            assert!(refused.is_some_and(|error| error.to_string().ends_with(reason)), "{access}");
        }
    }
    let part = owner.with_policy(rules(&[("/log", "hidden")])).unwrap().compact().unwrap_err();
    assert_eq!(part.to_string(), "cannot compact the sandbox: this view does not include the whole sandbox");
    assert!(owner.versions().remove_checkpoint("named").unwrap() && owner.versions().prune(&keep).unwrap().versions > 0);
}

// T-POL-07: what one policy shows may be what the other one hides.
#[test]
fn handles_without_a_principal_share_no_runs_and_sessions_unless_they_hide_the_same() {
    let owner = builder().file("/a/key", "alpha").file("/b/key", "beta").open().unwrap();
    let hiding = |path| owner.with_policy(rules(&[(path, "hidden")])).unwrap();
    let (one, other) = (hiding("/a"), hiding("/b"));
    one.session("s").unwrap().bash("x=$(cat /b/key); cat /b/key").unwrap();
    let commands = |sandbox: &Sandbox| sandbox.history(10).unwrap().into_iter().map(|run| run.command).collect::<Vec<_>>();
    let echo = |sandbox: &Sandbox| sandbox.session("s").unwrap().bash("echo [$x]").unwrap().stdout;
    let tighter = one.with_policy(rules(&[("/b", "hidden")])).unwrap();
    for apart in [&other, &tighter] {
        assert_eq!((commands(apart), apart.sessions().unwrap()), (vec![], vec![]));
        assert_eq!(echo(apart), b"[]\n");
    }
    // The same rules hide the same, and a handle that sees more may see the runs of one that sees less.
    assert_eq!((echo(&hiding("/a")), one.sessions().unwrap()), (b"[beta]\n".to_vec(), vec!["s".to_owned()]));
    assert_eq!(commands(&one), ["echo [$x]", "echo [$x]", "x=$(cat /b/key); cat /b/key"]);
    assert_eq!(commands(&other), ["echo [$x]", "echo [$x]"], "its own, and the run of the tighter handle");
}

// T-POL-07: a digest covers hidden content, so it would confirm a guess.
#[test]
fn a_view_of_a_part_receives_no_digest_of_the_whole() {
    let owner = builder().file("/secret/key", "k3y").open().unwrap();
    let bound = owner.with_policy(rules(&[("/secret", "hidden")])).unwrap();
    bound.bash("echo own > /own").unwrap();
    owner.versions().digest("HEAD").unwrap();
    assert!(owner.versions().resolve("HEAD").unwrap().digest.is_some());
    assert!(matches!(bound.versions().digest("HEAD"), Err(Error::Invalid(_))));
    assert_eq!(bound.versions().resolve("HEAD").unwrap().digest, None);
    assert_eq!(bound.versions().show("HEAD").unwrap().version.unwrap().digest, None);
    let logged = bound.versions().log(None, None, None).unwrap();
    assert!(!logged.is_empty() && logged.iter().all(|logged| logged.version.digest.is_none()));
    let log = actions().iter().find(|action| action.name == "log").unwrap();
    assert!(!log.run(&Context::new(bound.clone()), json!({})).is_error);
    assert!(log.run(&Context::new(bound), json!({ "digest": true })).is_error);
    assert!(!log.run(&Context::new(owner), json!({ "digest": true })).is_error);
}

// T-POL-08: a hook receives every change and every content.
#[test]
fn a_view_of_a_part_adds_no_hook() {
    let owner = builder().file("/secret/key", "k3y").open().unwrap();
    let bound = owner.with_policy(rules(&[("/secret", "hidden")])).unwrap();
    assert!(matches!(bound.on_commit("/", |_| Ok(())), Err(Error::Invalid(_))));
    owner.with_policy(rules(&[("/secret", "read")])).unwrap().on_commit("/", |_| Ok(())).unwrap();
    // The handle that opened the sandbox has the owner's rights.
    owner.set_policy(Some(rules(&[("/secret", "hidden")]))).unwrap();
    owner.on_commit("/", |_| Ok(())).unwrap();
}

// T-POL-03, T-POL-07.
#[test]
fn the_removal_of_another_name_of_a_hidden_file_is_not_an_event_of_a_view() {
    let owner = builder().file("/secret/key", "k3y").file("/free/f", "f").open().unwrap();
    owner.fs().hard_link("/secret/key", "/free/key").unwrap();
    let bound = owner.with_policy(rules(&[("/secret", "hidden")])).unwrap();
    let start = owner.events_after(None, None).unwrap().version;
    owner.bash("rm /free/key /free/f").unwrap();
    let seen = |sandbox: &Sandbox| -> Vec<String> {
        let events = sandbox.events_after(Some(start), None).unwrap().events;
        events.into_iter().map(|event| format!("{} {}", event.kind, event.path)).collect()
    };
    assert!(seen(&owner).contains(&"deleted /free/key".to_owned()), "{:?}", seen(&owner));
    assert_eq!(seen(&bound), ["deleted /free/f"]);
}
