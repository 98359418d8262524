//! The agent against the stock OpenSSH client, and against russh's for what that cannot ask.

mod member;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread;

use member::{Member, SOON, until};
use ringleader::agent::link::LinkEvent;
use ringleader::machine::Setup;
use ringleader::object::Identity;
use russh::keys::{PrivateKeyWithHashAlg, PublicKeyOrCertificate};
use russh::{ChannelMsg, Sig, client};
use rustix::process::{Pid, Signal};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

fn member() -> Member {
    Member::boot(&Setup::default())
}

#[test]
fn exec_runs_as_the_login_user_with_streams_apart_and_the_exit_status() {
    let member = member();
    let output = member.run("echo out; echo err >&2; exit 7");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    assert_eq!(member.printed("id -un; id -gn; pwd; umask"), "dev\ndev\n/home/dev\n0022\n");
    assert_eq!(member.run("kill -9 $$").status.code(), Some(255));
}

#[test]
fn a_session_gets_the_login_environment_the_setups_and_the_clients_welcome_variables() {
    let environment = BTreeMap::from([("POOL_NOTE".to_owned(), "two\nlines".to_owned())]);
    let member = Member::boot(&Setup { environment, ..Setup::default() });
    let options = ["-o", "SetEnv=LC_TIME=de_DE.UTF-8 RL_JOB=9 LD_PRELOAD=/x", "dev@127.0.0.1"];
    let output = member.ssh(&options).arg("env -0").output().expect("ssh runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let variables: BTreeMap<&str, &str> = text.split('\0').filter_map(|pair| pair.split_once('=')).collect();
    for (name, value) in [
        ("HOME", "/home/dev"),
        ("USER", "dev"),
        ("LOGNAME", "dev"),
        ("SHELL", "/bin/bash"),
        ("POOL_NOTE", "two\nlines"),
        ("LC_TIME", "de_DE.UTF-8"),
        ("RL_JOB", "9"),
    ] {
        assert_eq!(variables.get(name), Some(&value), "{name}");
    }
    assert!(variables.contains_key("SSH_CONNECTION") && variables["PATH"].contains("/usr/bin"));
    assert!(!variables.contains_key("LD_PRELOAD") && !variables.contains_key("TERM"));
}

#[test]
fn large_output_and_large_input_come_through_whole() {
    let member = member();
    let expected: Vec<u8> =
        (0..50_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut ssh = member
        .ssh(&["dev@127.0.0.1", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("runs");
    let (mut stdin, mut stdout) = (ssh.stdin.take().expect("piped"), ssh.stdout.take().expect("piped"));
    let sent = expected.clone();
    let sending = thread::spawn(move || stdin.write_all(&sent).expect("sent"));
    let mut received = Vec::new();
    stdout.read_to_end(&mut received).expect("received");
    sending.join().expect("sent");
    assert!(ssh.wait().expect("ended").success());
    assert!(received == expected, "{} of {} bytes, or others", received.len(), expected.len());
}

#[test]
fn a_program_that_does_not_read_holds_up_neither_other_sessions_nor_memory() {
    let member = member();
    member.runtime.block_on(async {
        let session = Client::connect(&member).await;
        let stuck = session.exec("sleep 1000").await;
        let flood = vec![0_u8; 64 << 20];
        let flooding = stuck.data_bytes(flood);
        let others = async {
            let mut written = 0;
            for _ in 0..20 {
                let (status, output) = session.run("head -c 2000000 /dev/zero").await;
                assert_eq!(status, Some(0));
                written += output.len();
            }
            written
        };
        let written = tokio::select! {
            _ = flooding => panic!("the agent took in what nobody reads"),
            written = others => written,
        };
        assert_eq!(written, 40_000_000);
    });
    let status = fs::read_to_string(format!("/proc/{}/status", member.agent_pid())).expect("read");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("there");
    let kibibytes: u64 = resident.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(kibibytes < 48 << 10, "the agent's memory rose to {kibibytes} KiB");
}

#[test]
fn a_shell_on_a_terminal_is_a_login_shell_and_follows_the_window() {
    let member = member();
    let mut terminal = Terminal::open(80, 24);
    let mut ssh = member.ssh(&["-tt", "dev@127.0.0.1"]);
    ssh.env("TERM", "vt100").stdin(terminal.side()).stdout(terminal.side()).stderr(terminal.side());
    let mut ssh = ssh.spawn().expect("ssh runs");
    terminal.say("echo \"$0 $TERM $(tty) size=$(stty size)\"\n");
    terminal.wait_for("-bash vt100 /dev/pts/");
    terminal.wait_for("size=24 80");
    terminal.resize(132, 50);
    rustix::process::kill_process(pid(&ssh), Signal::WINCH).expect("sent");
    terminal.say("until [ \"$(stty size)\" = '50 132' ]; do sleep 0.01; done; echo re''sized\n");
    terminal.wait_for("resized");
    // A key of the terminal's interrupts what runs there, and the shell lives on.
    terminal.say("sh -c 'echo re''ady; exec sleep 1000'\n");
    terminal.wait_for("ready");
    terminal.say("\u{3}");
    terminal.say("exit 5\n");
    assert_eq!(ssh.wait().expect("ended").code(), Some(5));
}

#[test]
fn signals_reach_the_program_and_a_death_by_signal_is_told_as_one() {
    let member = member();
    member.runtime.block_on(async {
        let session = Client::connect(&member).await;
        let mut channel =
            session.exec("trap 'echo got; exit 3' TERM; echo ready; while :; do sleep 0.01; done").await;
        wait_for_output(&mut channel, b"ready\n").await;
        channel.signal(Sig::TERM).await.expect("sent");
        let end = Ended::of(&mut channel).await;
        assert_eq!((end.output.as_slice(), end.status), (&b"got\n"[..], Some(3)));
        let mut channel = session.exec("kill -SEGV $$").await;
        let end = Ended::of(&mut channel).await;
        assert_eq!((end.status, end.signal.as_deref()), (None, Some("SEGV")));
    });
}

#[test]
fn only_the_login_user_with_an_authorized_key_comes_in() {
    let member = member();
    let stranger = member.path("stranger");
    let stranger = ["-i", stranger.to_str().expect("text"), "dev@127.0.0.1", "true"];
    for options in [&stranger[..], &["root@127.0.0.1", "true"]] {
        let output = member.ssh(options).output().expect("ssh runs");
        assert_eq!(output.status.code(), Some(255));
        assert!(
            String::from_utf8_lossy(&output.stderr).trim_end().ends_with("Permission denied (publickey)."),
            "{output:?}"
        );
    }
    // A key the user put there is as good as one of ours.
    let line = fs::read_to_string(member.path("stranger.pub")).expect("read");
    member.printed(&format!("echo '{}' >> .ssh/authorized_keys", line.trim()));
    assert!(member.ssh(&stranger).status().expect("ssh runs").success());
    let log = member.log();
    assert!(
        log.contains("the key is not authorized") && log.contains("\"root\" is not the login user"),
        "{log}"
    );
    assert!(!log.contains(line.split(' ').nth(1).expect("a key")), "{log}");
}

// rule L18
#[test]
fn a_key_taken_away_lets_nobody_in_any_more_and_open_sessions_live_on() {
    let member = member();
    let mut open = member.ssh(&["dev@127.0.0.1", "cat"]);
    let mut open = open.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("ssh runs");
    let mut lines = BufReader::new(open.stdout.take().expect("piped"));
    let mut echo = |open: &mut Child, text: &str| {
        open.stdin.as_mut().expect("piped").write_all(text.as_bytes()).expect("sent");
        let mut line = String::new();
        lines.read_line(&mut line).expect("received");
        assert_eq!(line, text);
    };
    echo(&mut open, "before\n");
    assert_eq!(member.apply(2, &["stranger"], &Setup::default()).keys, Ok(()));
    assert_eq!(member.run("true").status.code(), Some(255));
    echo(&mut open, "after\n");
    drop(open.stdin.take());
    assert!(open.wait().expect("ended").success());
    assert_eq!(member.apply(3, &["id"], &Setup::default()).keys, Ok(()));
    assert!(member.run("true").status.success());
}

#[test]
fn twenty_sessions_share_one_connection() {
    let member = member();
    let socket = format!("ControlPath={}", member.path("mux").display());
    let mut master = member.ssh(&["-M", "-N", "-o", &socket, "dev@127.0.0.1"]).spawn().expect("ssh runs");
    until("the master listens", || member.path("mux").exists().then_some(()));
    let session = |number: usize| {
        let mut ssh = member.ssh(&["-o", &socket, "dev@127.0.0.1", "cat; echo done"]);
        let child = ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("ssh runs");
        (number, child)
    };
    let sessions: Vec<(usize, Child)> = (0..20).map(session).collect();
    let mut watch = member.link.watch();
    assert_eq!(member.runtime.block_on(watch.next()), Some(LinkEvent::Sessions(1)));
    for (number, mut child) in sessions {
        let mut stdin = child.stdin.take().expect("piped");
        write!(stdin, "{number} ").expect("sent");
        drop(stdin);
        let output = child.wait_with_output().expect("ended");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{number} done\n"));
    }
    master.kill().expect("killed");
    master.wait().expect("ended");
    assert_eq!(member.runtime.block_on(watch.next()), Some(LinkEvent::Sessions(0)));
}

#[test]
fn a_client_that_goes_away_hangs_up_its_programs() {
    let member = member();
    // The shell would die of telling nobody that its `sleep` was hung up.
    let mut ssh = member.ssh(&[
        "dev@127.0.0.1",
        "exec 2>/dev/null; trap 'touch hung-up; exit' HUP; touch ready; while :; do sleep 0.01; done",
    ]);
    let mut ssh = ssh.spawn().expect("ssh runs");
    until("the program runs", || member.run("test -e ready").status.success().then_some(()));
    ssh.kill().and_then(|()| ssh.wait()).expect("killed");
    until("the program was hung up", || member.run("test -e hung-up").status.success().then_some(()));
}

#[test]
fn what_is_not_served_yet_is_refused_at_once_and_the_connection_goes_on() {
    let member = member();
    let subsystem = member.ssh(&["-s", "dev@127.0.0.1", "sftp"]).output().expect("ssh runs");
    assert!(String::from_utf8_lossy(&subsystem.stderr).contains("subsystem request failed"), "{subsystem:?}");
    let forward = member.ssh(&["-W", "127.0.0.1:1", "dev@127.0.0.1"]).output().expect("ssh runs");
    assert!(String::from_utf8_lossy(&forward.stderr).contains("stdio forwarding failed"), "{forward:?}");
    let all = ["-X", "-A", "-R", "7777:127.0.0.1:1", "dev@127.0.0.1", "echo still here"];
    let output = member.ssh(&all).output().expect("ssh runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "still here\n", "{output:?}");
}

#[test]
fn connections_that_never_log_in_are_bounded_and_do_not_lock_others_out_for_good() {
    let member = member();
    let connect = || std::os::unix::net::UnixStream::connect(member.path("ssh.sock")).expect("connected");
    let strangers: Vec<_> = (0..16).map(|_| connect()).collect();
    let mut one_too_many = connect();
    let mut nothing = Vec::new();
    assert_eq!(one_too_many.read_to_end(&mut nothing).expect("closed"), 0);
    drop(strangers);
    until("there is room again", || member.run("true").status.success().then_some(()));
}

#[test]
fn a_restarted_agent_keeps_its_host_key_and_lets_the_same_keys_in() {
    let member = member();
    let before = member.link.agent().clone();
    assert_eq!((before.login_user.as_str(), before.host_keys.len()), ("", 1));
    let agent = i32::try_from(member.agent_pid()).ok().and_then(Pid::from_raw).expect("a process");
    rustix::process::kill_process(agent, Signal::KILL).expect("killed");
    let mut watch = member.link.watch();
    let lost = async { while !matches!(watch.next().await, Some(LinkEvent::Lost(_))) {} };
    member.runtime.block_on(async { tokio::time::timeout(SOON, lost).await }).expect("the link is lost");
    assert_eq!(member.printed("echo in"), "in\n");
    let again = member.runtime.block_on(member::link(member.path("control.sock")));
    assert_eq!((again.agent().login_user.as_str(), &again.agent().host_keys), ("dev", &before.host_keys));
}

#[test]
fn another_login_user_with_a_shell_and_groups_takes_over() {
    let member = member();
    let identity = Identity {
        user: Some("ann".into()),
        shell: Some("/bin/sh".into()),
        groups: vec!["video".into(), "lab".into()],
        sudo: Some(false),
    };
    let applied = member.apply(2, &["id"], &Setup { identity, ..Setup::default() });
    assert_eq!((applied.keys, applied.setup, applied.remarks), (Ok(()), Ok(()), Vec::new()));
    let output = member.ssh(&["ann@127.0.0.1", "id -nG; echo $SHELL; pwd"]).output().expect("ssh runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ann video lab\n/bin/sh\n/home/ann\n", "{output:?}");
    assert_eq!(member.run("true").status.code(), Some(255));
}

/// A russh client that is logged in.
struct Client {
    handle: client::Handle<AnyHost>,
}

struct AnyHost;

impl client::Handler for AnyHost {
    type Error = russh::Error;

    async fn check_server_key(&mut self, _key: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        Ok(true)
    }
}

impl Client {
    async fn connect(member: &Member) -> Self {
        let stream = tokio::net::UnixStream::connect(member.path("ssh.sock")).await.expect("connected");
        let config = Arc::new(client::Config::default());
        let mut handle = client::connect_stream(config, stream, AnyHost).await.expect("connected");
        let key = russh::keys::load_secret_key(member.path("id"), None).expect("a key");
        let key = PrivateKeyWithHashAlg::new(Arc::new(key), None);
        assert!(handle.authenticate_publickey("dev", key).await.expect("answered").success());
        Self { handle }
    }

    async fn exec(&self, command: &str) -> russh::Channel<client::Msg> {
        let channel = self.handle.channel_open_session().await.expect("opened");
        channel.exec(true, command).await.expect("asked");
        channel
    }

    async fn run(&self, command: &str) -> (Option<u32>, Vec<u8>) {
        let ended = Ended::of(&mut self.exec(command).await).await;
        (ended.status, ended.output)
    }
}

/// How a session ended, and what it wrote.
#[derive(Default)]
struct Ended {
    output: Vec<u8>,
    status: Option<u32>,
    signal: Option<String>,
}

impl Ended {
    async fn of(channel: &mut russh::Channel<client::Msg>) -> Self {
        let mut ended = Self::default();
        while let Some(message) = channel.wait().await {
            match message {
                ChannelMsg::Data { data } => ended.output.extend_from_slice(&data),
                ChannelMsg::ExitStatus { exit_status } => ended.status = Some(exit_status),
                ChannelMsg::ExitSignal { signal_name, .. } => ended.signal = Some(format!("{signal_name:?}")),
                _ => {}
            }
        }
        ended
    }
}

async fn wait_for_output(channel: &mut russh::Channel<client::Msg>, wanted: &[u8]) {
    let mut output = Vec::new();
    while output != wanted {
        if let ChannelMsg::Data { data } = channel.wait().await.expect("open") {
            output.extend_from_slice(&data);
        }
    }
}

/// A person's terminal, for a client that wants one.
struct Terminal {
    master: fs::File,
    side: OwnedFd,
    seen: String,
}

impl Terminal {
    fn open(columns: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = rustix::pty::openpt(flags).expect("opened");
        rustix::pty::unlockpt(&master).expect("unlocked");
        let side = rustix::pty::ioctl_tiocgptpeer(&master, flags).expect("opened");
        let terminal = Self { master: master.into(), side, seen: String::new() };
        terminal.resize(columns, rows);
        terminal
    }

    fn resize(&self, ws_col: u16, ws_row: u16) {
        let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.master, size).expect("set");
    }

    fn side(&self) -> Stdio {
        self.side.try_clone().expect("cloned").into()
    }

    fn say(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).expect("typed");
    }

    /// Reads until the text appears; what came with it is forgotten.
    fn wait_for(&mut self, wanted: &str) {
        let mut buffer = [0; 4096];
        while !self.seen.contains(wanted) {
            let count = self.master.read(&mut buffer).expect("read");
            self.seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        let end = self.seen.find(wanted).expect("just seen") + wanted.len();
        self.seen.drain(..end);
    }
}

fn pid(child: &Child) -> Pid {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process")
}
