//! What a system needs in /etc where the host's is an administrator's, and stayed out.

use std::io;
use std::path::Path;

use super::tree::Tree;

const FILES: [(&str, &str); 6] = [
    ("/etc/bash.bashrc", "[ -z \"$PS1\" ] || PS1='\\u@\\h:\\w\\$ '\n"),
    ("/etc/host.conf", "multi on\n"),
    ("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n"),
    (
        "/etc/login.defs",
        "MAIL_DIR /var/mail\nENV_SUPATH PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
         ENV_PATH PATH=/usr/local/bin:/usr/bin:/bin\nUMASK 022\nHOME_MODE 0700\nUID_MIN 1000\n\
         UID_MAX 60000\nSYS_UID_MIN 100\nSYS_UID_MAX 999\nGID_MIN 1000\nGID_MAX 60000\nSYS_GID_MIN 100\n\
         SYS_GID_MAX 999\nUSERGROUPS_ENAB yes\nENCRYPT_METHOD YESCRYPT\n",
    ),
    ("/etc/protocols", "ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nipv6-icmp 58 IPv6-ICMP\n"),
    // Programs ask for these by name.
    (
        "/etc/services",
        "ftp 21/tcp\nssh 22/tcp\nsmtp 25/tcp\ndomain 53/tcp\ndomain 53/udp\nhttp 80/tcp\nntp 123/udp\n\
         https 443/tcp\ngit 9418/tcp\n",
    ),
];

/// Where there is PAM.
const PAM: [(&str, &str); 6] = [
    ("/etc/pam.d/other", EVERYTHING),
    ("/etc/pam.d/login", EVERYTHING),
    ("/etc/pam.d/passwd", "@include common-password\n"),
    ("/etc/pam.d/su", ROOT_WITHOUT_PASSWORD),
    ("/etc/pam.d/su-l", ROOT_WITHOUT_PASSWORD),
    (
        "/etc/pam.d/sudo",
        "@include common-auth\n@include common-account\n@include common-session-noninteractive\n",
    ),
];
const EVERYTHING: &str =
    "@include common-auth\n@include common-account\n@include common-password\n@include common-session\n";
const ROOT_WITHOUT_PASSWORD: &str = "auth sufficient pam_rootok.so\n@include common-auth\n\
                                     @include common-account\n@include common-session\n";

/// Writes what is not there.
pub fn fill_in(tree: &mut Tree) -> io::Result<()> {
    let pam: &[_] = if tree.has(Path::new("/etc/pam.d")) { &PAM } else { &[] };
    for (path, text) in FILES.iter().chain(pam) {
        if !tree.has(Path::new(path)) {
            tree.write(path, 0o644, text)?;
        }
    }
    Ok(())
}
