//! The control groups of machines, on version 2 and on the version 1 hierarchies.
//!
//! A machine gets one group in the unified hierarchy, through which all of it is killed at once,
//! and one for each version 1 controller that it has a limit for. They are made anew for each
//! boot and recorded with it, because the daemon that removes them may run in other groups itself.
//!
//! Where the groups go: on version 1 below the daemon's own. In the unified hierarchy at the top,
//! as other runtimes do: below a systemd service they would keep that service from starting again
//! (no process may join a group whose children have controllers).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ulid::Ulid;

use super::launcher::Group;
use super::limits::Limits;

/// Where this daemon puts its machines' groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroups {
    /// The common parent in the unified hierarchy, where there is one.
    unified: Option<Unified>,
    /// Version 1 controllers and the common parent in each.
    legacy: Vec<(Controller, PathBuf)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Unified {
    /// Where the hierarchy is mounted.
    mount: PathBuf,
    parent: PathBuf,
    /// The controllers of interest that this hierarchy has.
    controllers: Vec<Controller>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controller {
    Memory,
    Cpu,
    Pids,
}

impl Controller {
    const ALL: [Self; 3] = [Self::Memory, Self::Cpu, Self::Pids];

    const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Pids => "pids",
        }
    }
}

impl Cgroups {
    /// Looks at what this host has. `parent` is where the groups go instead of the places above.
    ///
    /// # Errors
    /// When `/proc/self` cannot be read.
    pub fn discover(instance: Ulid, parent: Option<&Path>) -> io::Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let mut found = Self::parse(&mounts, &own, parent, &format!("ringleader-{instance}"));
        if let Some(unified) = &mut found.unified {
            let offered = fs::read_to_string(unified.mount.join("cgroup.controllers")).unwrap_or_default();
            unified.controllers = Controller::ALL
                .into_iter()
                .filter(|controller| offered.split_ascii_whitespace().any(|name| name == controller.name()))
                .collect();
        }
        Ok(found)
    }

    fn parse(mountinfo: &str, own: &str, parent: Option<&Path>, name: &str) -> Self {
        let mut found = Self::default();
        for mount in mountinfo.lines().filter_map(Mount::parse) {
            let controller = Controller::ALL.into_iter().find(|controller| mount.has(controller.name()));
            match (mount.file_system, controller) {
                ("cgroup2", _) if found.unified.is_none() => {
                    let parent = mount.point.join(parent.map_or(Path::new(""), relative)).join(name);
                    found.unified = Some(Unified { mount: mount.point, parent, controllers: Vec::new() });
                }
                ("cgroup", Some(controller)) => {
                    let own = parent.map(relative).or_else(|| own_group(own, controller, mount.root));
                    let directory = mount.point.join(own.unwrap_or(Path::new(""))).join(name);
                    found.legacy.push((controller, directory));
                }
                _ => {}
            }
        }
        found
    }

    /// The groups of one machine, parents first.
    #[must_use]
    pub fn plan(&self, machine: Ulid, limits: &Limits) -> Vec<Group> {
        let mut groups = Vec::new();
        if let Some(unified) = &self.unified {
            let settings = unified
                .controllers
                .iter()
                .filter_map(|controller| unified_setting(*controller, limits))
                .collect();
            groups.push(Group { directory: unified.parent.join(machine.to_string()), settings });
        }
        for (controller, parent) in &self.legacy {
            let settings = legacy_settings(*controller, limits);
            if !settings.is_empty() {
                groups.push(Group { directory: parent.join(machine.to_string()), settings });
            }
        }
        groups
    }

    /// Every group that a machine may have here.
    #[must_use]
    pub fn directories(&self, machine: Ulid) -> Vec<PathBuf> {
        let unified = self.unified.as_ref().map(|unified| &unified.parent);
        let legacy = self.legacy.iter().map(|(_, parent)| parent);
        unified.into_iter().chain(legacy).map(|parent| parent.join(machine.to_string())).collect()
    }

    /// The limits of `limits` that no hierarchy of this host can keep.
    #[must_use]
    pub fn missing(&self, limits: &Limits) -> Vec<&'static str> {
        let asked = |controller| !legacy_settings(controller, limits).is_empty();
        Controller::ALL
            .into_iter()
            .filter(|controller| asked(*controller) && !self.keeps(*controller))
            .map(Controller::name)
            .collect()
    }

    /// The controllers that limits can be kept with here.
    #[must_use]
    pub fn controllers(&self) -> Vec<&'static str> {
        Controller::ALL
            .into_iter()
            .filter(|controller| self.keeps(*controller))
            .map(Controller::name)
            .collect()
    }

    fn keeps(&self, controller: Controller) -> bool {
        self.legacy.iter().any(|(legacy, _)| *legacy == controller)
            || self.unified.as_ref().is_some_and(|unified| unified.controllers.contains(&controller))
    }
}

/// Makes the groups. What exists already is used as it is.
///
/// # Errors
/// When a group cannot be made or does not take its limits.
pub fn make(groups: &[Group]) -> io::Result<()> {
    for group in groups {
        fs::create_dir_all(&group.directory)?;
        if group.directory.join("cgroup.type").exists() && !group.settings.is_empty() {
            hand_down_controllers(&group.directory)?;
        }
        for (file, content) in &group.settings {
            fs::write(group.directory.join(file), content)?;
        }
    }
    Ok(())
}

/// Puts a process into all of the groups.
///
/// # Errors
/// When one of them does not take it.
pub fn enter(groups: &[Group], pid: i32) -> io::Result<()> {
    groups.iter().try_for_each(|group| fs::write(group.directory.join("cgroup.procs"), pid.to_string()))
}

/// Kills everything in the groups, where the kernel can do that; elsewhere the death of a
/// machine's first process takes the others along.
pub fn kill(directories: &[PathBuf]) {
    for directory in directories {
        drop(fs::write(directory.join("cgroup.kill"), "1"));
    }
}

/// Removes empty groups, and their parents when these were the last. Says which ones stayed.
pub fn remove(directories: &[PathBuf]) -> Vec<PathBuf> {
    let deadline = Instant::now() + Duration::from_secs(1);
    directories.iter().filter(|directory| !remove_one(directory, deadline)).cloned().collect()
}

fn remove_one(directory: &Path, deadline: Instant) -> bool {
    loop {
        let error = match remove_tree(directory) {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => error,
        };
        // A process that has just died counts until the kernel has taken it apart.
        if error.raw_os_error() != Some(libc::EBUSY) || Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    if let Some(parent) = directory.parent() {
        // Stays as long as another machine is in it.
        drop(fs::remove_dir(parent));
    }
    true
}

/// Groups that the machine made below its own go first.
fn remove_tree(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(directory)
}

/// Lets the groups above a new one pass their controllers down to it.
fn hand_down_controllers(directory: &Path) -> io::Result<()> {
    let mut parents: Vec<&Path> = directory
        .ancestors()
        .skip(1)
        .take_while(|parent| parent.join("cgroup.subtree_control").exists())
        .collect();
    parents.reverse();
    for parent in parents {
        let offered = fs::read_to_string(parent.join("cgroup.controllers"))?;
        let wanted: Vec<String> = Controller::ALL
            .into_iter()
            .filter(|controller| offered.split_ascii_whitespace().any(|name| name == controller.name()))
            .map(|controller| format!("+{}", controller.name()))
            .collect();
        fs::write(parent.join("cgroup.subtree_control"), wanted.join(" "))?;
    }
    Ok(())
}

const CPU_PERIOD_MICROS: u64 = 100_000;

const fn quota_micros(cpu_millis: u64) -> u64 {
    cpu_millis * CPU_PERIOD_MICROS / 1000
}

fn unified_setting(controller: Controller, limits: &Limits) -> Option<(String, String)> {
    match controller {
        Controller::Memory => limits.memory_bytes.map(|bytes| ("memory.max".into(), bytes.to_string())),
        Controller::Cpu => limits
            .cpu_millis
            .map(|millis| ("cpu.max".into(), format!("{} {CPU_PERIOD_MICROS}", quota_micros(millis)))),
        Controller::Pids => limits.processes.map(|count| ("pids.max".into(), count.to_string())),
    }
}

fn legacy_settings(controller: Controller, limits: &Limits) -> Vec<(String, String)> {
    let settings = match controller {
        Controller::Memory => {
            limits.memory_bytes.map(|bytes| vec![("memory.limit_in_bytes", bytes.to_string())])
        }
        Controller::Cpu => limits.cpu_millis.map(|millis| {
            vec![
                ("cpu.cfs_period_us", CPU_PERIOD_MICROS.to_string()),
                ("cpu.cfs_quota_us", quota_micros(millis).to_string()),
            ]
        }),
        Controller::Pids => limits.processes.map(|count| vec![("pids.max", count.to_string())]),
    };
    settings.unwrap_or_default().into_iter().map(|(file, content)| (file.to_owned(), content)).collect()
}

/// One line of `/proc/self/mountinfo`.
struct Mount<'a> {
    /// What of the file system is mounted.
    root: &'a str,
    point: PathBuf,
    file_system: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, point) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (file_system, _, options) = (after.next()?, after.next()?, after.next()?);
        Some(Self { root, point: point.into(), file_system, options })
    }

    fn has(&self, option: &str) -> bool {
        self.options.split(',').any(|word| word == option)
    }
}

/// The group of this process below the mount of `controller`, from `/proc/self/cgroup`.
fn own_group<'a>(own: &'a str, controller: Controller, mounted_root: &str) -> Option<&'a Path> {
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        controllers.split(',').any(|name| name == controller.name()).then_some(path)
    })?;
    let below = Path::new(path).strip_prefix(mounted_root).unwrap_or(Path::new(path));
    Some(relative(below))
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
36 31 0:33 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 /docker/x /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
    const OWN: &str = "8:pids:/docker/x/y\n4:memory:/service\n1:cpu,cpuacct:/\n0::/service";

    #[test]
    fn legacy_groups_go_below_the_daemons_own_and_unified_ones_to_the_top() {
        let found = Cgroups::parse(HYBRID, OWN, None, "ringleader-X");
        assert_eq!(
            found.legacy,
            [
                (Controller::Cpu, "/sys/fs/cgroup/cpu,cpuacct/ringleader-X".into()),
                (Controller::Memory, "/sys/fs/cgroup/memory/service/ringleader-X".into()),
                (Controller::Pids, "/sys/fs/cgroup/pids/y/ringleader-X".into()),
            ]
        );
        let unified = found.unified.expect("the hybrid layout has one");
        assert_eq!(unified.parent, Path::new("/sys/fs/cgroup/unified/ringleader-X"));
    }

    #[test]
    fn a_configured_parent_serves_every_hierarchy() {
        let found = Cgroups::parse(HYBRID, OWN, Some(Path::new("/machines.slice")), "ringleader-X");
        assert!(found.legacy.iter().all(|(_, directory)| directory.ends_with("machines.slice/ringleader-X")));
    }

    #[test]
    fn a_machine_without_limits_gets_only_the_group_it_is_killed_by() {
        let found = Cgroups::parse(HYBRID, OWN, None, "ringleader-X");
        let groups = found.plan(Ulid::nil(), &Limits::default());
        assert_eq!(groups.len(), 1);
        assert!(groups[0].settings.is_empty());
    }

    #[test]
    fn limits_become_settings_of_their_controllers() {
        let found = Cgroups::parse(HYBRID, OWN, None, "ringleader-X");
        let limits = Limits { cpu_millis: Some(1500), processes: Some(64), ..Limits::default() };
        let settings: Vec<_> =
            found.plan(Ulid::nil(), &limits).into_iter().flat_map(|group| group.settings).collect();
        let expected = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "150000"), ("pids.max", "64")];
        assert_eq!(settings, expected.map(|(file, content)| (file.to_owned(), content.to_owned())));
        assert!(found.missing(&limits).is_empty());
    }

    #[test]
    fn a_limit_that_nothing_keeps_is_named() {
        let limits = Limits { memory_bytes: Some(1 << 30), ..Limits::default() };
        assert_eq!(Cgroups::default().missing(&limits), ["memory"]);
    }
}
