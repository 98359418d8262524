use std::fs::File;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};

use super::*;

fn options(dir: &Path) -> ImageOptions {
    ImageOptions {
        dir: dir.join("images"),
        named: BTreeMap::new(),
        default: HOST.into(),
        host_includes: Vec::new(),
    }
}

/// A root file system of four files.
fn small_root(dir: &Path) -> PathBuf {
    let root = dir.join("small");
    if root.exists() {
        return root;
    }
    fs::create_dir_all(root.join("usr/lib")).expect("made");
    fs::write(root.join("usr/lib/os-release"), "ID=small\nVERSION_ID=\"1\"\n").expect("written");
    fs::write(root.join("usr/tool"), "tool").expect("written");
    symlink("usr/tool", root.join("tool")).expect("linked");
    root
}

fn with_small(dir: &Path) -> Images {
    let named = BTreeMap::from([("small".to_owned(), small_root(dir))]);
    Images::open(ImageOptions { named, default: "small".into(), ..options(dir) }).expect("opens")
}

#[test]
fn a_named_directory_becomes_a_generation_that_stays_as_it_was() {
    let dir = tempfile::tempdir().expect("a directory");
    let images = with_small(dir.path());
    let generation = images.generation("small").expect("taken");
    fs::remove_file(dir.path().join("small/usr/tool")).expect("removed");
    assert_eq!(fs::read_to_string(generation.root.join("tool")).expect("there"), "tool");
    assert_eq!(images.generation("small").expect("there").id, generation.id, "taken once");
    assert_eq!(images.by_id(&generation.id).expect("found").root, generation.root);
}

#[test]
fn a_refresh_makes_a_new_generation_and_old_ones_go_when_nobody_uses_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let images = with_small(dir.path());
    let old = images.generation("small").expect("taken");
    let new = images.refresh("small").expect("taken anew");
    assert_ne!(old.id, new.id);
    assert_eq!(images.generation("small").expect("there").id, new.id);
    images.remove_unused(&BTreeSet::from([old.id.clone()]));
    assert!(images.by_id(&old.id).is_some(), "a member still uses it");
    images.remove_unused(&BTreeSet::new());
    assert!(images.by_id(&old.id).is_none());
    assert!(images.by_id(&new.id).is_some(), "the current one stays");
}

#[test]
fn an_image_that_is_not_carried_is_refused_and_those_carried_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let images = with_small(dir.path());
    let asked = Image { distribution: "windows".into(), version: "11".into(), os: String::new() };
    let said = images.resolve(Some(&asked)).expect_err("refused").to_string();
    assert!(said.starts_with("no image here is windows 11; this daemon carries:"), "{said}");
    assert!(said.contains("small (small 1)"), "{said}");
    let small = Image { distribution: "small".into(), ..Image::default() };
    assert_eq!(images.resolve(Some(&small)).expect("carried"), "small");
    assert_eq!(images.resolve(None).expect("the default"), "small");
}

#[test]
fn a_tar_archive_is_unpacked_and_a_compressed_one_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let tar = dir.path().join("small.tar");
    let mut builder = tar::Builder::new(File::create(&tar).expect("made"));
    builder.follow_symlinks(false);
    builder.append_dir_all(".", small_root(dir.path())).expect("packed");
    builder.finish().expect("packed");
    let gzip = dir.path().join("small.tar.gz");
    fs::write(&gzip, [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]).expect("written");
    let named = BTreeMap::from([("plain".to_owned(), tar), ("packed".to_owned(), gzip)]);
    let images = Images::open(ImageOptions { named, ..options(dir.path()) }).expect("opens");
    let asked = Image { distribution: "small".into(), version: "1".into(), os: "linux".into() };
    assert_eq!(images.resolve(Some(&asked)).expect("known before it is taken"), "plain");
    let generation = images.generation("plain").expect("taken");
    assert_eq!(fs::read_to_string(generation.root.join("tool")).expect("there"), "tool");
    let said = images.generation("packed").expect_err("refused").to_string();
    assert!(said.contains("it is compressed"), "{said}");
}

#[test]
fn an_interrupted_build_is_removed_at_the_next_start() {
    let dir = tempfile::tempdir().expect("a directory");
    let images = with_small(dir.path());
    images.generation("small").expect("taken");
    let left = dir.path().join("images/small/.building-x/root");
    fs::create_dir_all(&left).expect("made");
    let named = BTreeMap::from([("small".to_owned(), dir.path().join("small"))]);
    Images::open(ImageOptions { named, ..options(dir.path()) }).expect("opens");
    assert!(!left.exists());
}

#[test]
fn a_source_on_another_file_system_is_copied_with_its_modes() {
    let source = tempfile::tempdir_in("/dev/shm").expect("/dev/shm is a file system of its own");
    let dir = tempfile::tempdir().expect("a directory");
    let device = |path: &Path| fs::metadata(path).expect("there").dev();
    assert_ne!(device(source.path()), device(dir.path()), "this needs two file systems");
    let root = small_root(source.path());
    fs::set_permissions(root.join("usr/tool"), fs::Permissions::from_mode(0o4755)).expect("set");
    let named = BTreeMap::from([("small".to_owned(), root)]);
    let images = Images::open(ImageOptions { named, ..options(dir.path()) }).expect("opens");
    let generation = images.generation("small").expect("taken");
    let tool = fs::metadata(generation.root.join("usr/tool")).expect("there");
    assert_eq!((tool.mode() & 0o7777, tool.len()), (0o4755, 4));
    assert_eq!(fs::read_link(generation.root.join("tool")).expect("a link"), Path::new("usr/tool"));
}

#[test]
fn a_build_under_way_is_no_generation_and_costs_the_current_one_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let images = with_small(dir.path());
    let current = images.generation("small").expect("taken");
    // As it is while another process syncs what it built: described, and not yet named.
    let ulid = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ";
    let building = dir.path().join("images/small").join(format!(".building-{ulid}"));
    fs::create_dir_all(building.join("root")).expect("made");
    let described = dir.path().join("images").join(&current.id).join("generation.json");
    let text = fs::read_to_string(described).expect("there").replace(&current.id, &format!("small/{ulid}"));
    fs::write(building.join("generation.json"), text).expect("written");
    images.remove_unused(&BTreeSet::new());
    assert_eq!(images.generation("small").expect("there").id, current.id);
    assert!(images.by_id(&format!("small/.building-{ulid}")).is_none());
    assert!(images.by_id("small/../small").is_none());
}

#[test]
fn a_refresh_is_current_also_when_the_clock_was_set_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let images = with_small(dir.path());
    let future = images.generation("small").expect("taken");
    let (home, later) = (dir.path().join("images/small"), "7MZZZZZZZZZZZZZZZZZZZZZZZZ");
    let description = dir.path().join("images").join(&future.id).join("generation.json");
    let text =
        fs::read_to_string(&description).expect("there").replace(&future.id, &format!("small/{later}"));
    fs::write(description, text).expect("written");
    fs::rename(dir.path().join("images").join(&future.id), home.join(later)).expect("renamed");
    let refreshed = images.refresh("small").expect("taken anew");
    assert_eq!(images.generation("small").expect("there").id, refreshed.id);
}

#[test]
fn a_failed_build_leaves_nothing_behind() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = dir.path().join("no-system");
    fs::create_dir_all(source.join("notes")).expect("made");
    let named = BTreeMap::from([("odd".to_owned(), source)]);
    let images = Images::open(ImageOptions { named, ..options(dir.path()) }).expect("opens");
    let said = images.generation("odd").expect_err("refused").to_string();
    assert!(said.contains("it is no root file system"), "{said}");
    let left: Vec<_> = fs::read_dir(dir.path().join("images/odd")).expect("there").flatten().collect();
    assert_eq!(left.len(), 1, "only the lock: {left:?}");
    images.generation("elsewhere").expect_err("not carried");
    assert!(!dir.path().join("images/elsewhere").exists());
}

#[test]
fn generations_of_an_image_that_is_carried_no_more_go_when_nobody_uses_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let old = with_small(dir.path()).generation("small").expect("taken");
    let images = Images::open(options(dir.path())).expect("opens");
    images.remove_unused(&BTreeSet::from([old.id.clone()]));
    assert!(images.by_id(&old.id).is_some(), "a member still uses it");
    images.remove_unused(&BTreeSet::new());
    assert!(images.by_id(&old.id).is_none());
}

#[test]
fn a_set_uid_program_is_a_file_of_its_own() {
    // dpkg takes all rights from an old set-uid file, under all its names, when it replaces it.
    let dir = tempfile::tempdir().expect("a directory");
    let root = small_root(dir.path());
    fs::write(root.join("usr/sudo"), "sudo").expect("written");
    fs::set_permissions(root.join("usr/sudo"), fs::Permissions::from_mode(0o4755)).expect("set");
    let generation = with_small(dir.path()).generation("small").expect("taken");
    fs::set_permissions(root.join("usr/sudo"), fs::Permissions::from_mode(0o600)).expect("set");
    let mode = |path: &str| fs::metadata(generation.root.join(path)).expect("there").mode() & 0o7777;
    assert_eq!(mode("usr/sudo"), 0o4755);
    let number = |path: PathBuf| fs::metadata(path).expect("there").ino();
    assert_eq!(number(generation.root.join("usr/tool")), number(root.join("usr/tool")), "the rest is linked");
}

#[test]
fn a_root_that_only_its_owner_may_enter_still_lets_users_in() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = small_root(dir.path());
    fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).expect("set");
    let generation = with_small(dir.path()).generation("small").expect("taken");
    assert_eq!(fs::metadata(&generation.root).expect("there").mode() & 0o7777, 0o755);
    for private in ["images", "images/small"] {
        let mode = fs::metadata(dir.path().join(private)).expect("there").mode();
        assert_eq!(mode & 0o777, 0o700, "{private}");
    }
}

#[test]
fn owners_that_no_machine_has_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = small_root(dir.path());
    chown(root.join("usr/tool"), Some(100_000), Some(100_000)).expect("owned: run this test as root");
    let said = with_small(dir.path()).generation("small").expect_err("refused").to_string();
    assert!(said.contains("/usr/tool: it belongs to 100000:100000"), "{said}");
}

#[test]
fn a_directory_that_holds_the_images_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let named = BTreeMap::from([("all".to_owned(), dir.path().to_owned())]);
    let images = Images::open(ImageOptions { named, ..options(dir.path()) }).expect("opens");
    let said = images.generation("all").expect_err("refused").to_string();
    assert!(said.contains("the images themselves are kept in it"), "{said}");
}

#[test]
fn a_name_that_leads_elsewhere_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let named = BTreeMap::from([("../up".to_owned(), dir.path().to_owned())]);
    Images::open(ImageOptions { named, ..options(dir.path()) }).expect_err("refused");
}

#[test]
fn a_copy_across_file_systems_keeps_times_and_shared_files() {
    let source = tempfile::tempdir_in("/dev/shm").expect("/dev/shm is a file system of its own");
    let dir = tempfile::tempdir().expect("a directory");
    let root = small_root(source.path());
    fs::hard_link(root.join("usr/tool"), root.join("usr/second")).expect("linked");
    let named = BTreeMap::from([("small".to_owned(), root.clone())]);
    let images = Images::open(ImageOptions { named, ..options(dir.path()) }).expect("opens");
    let generation = images.generation("small").expect("taken");
    let look = |root: &Path, name: &str| fs::metadata(root.join("usr").join(name)).expect("there");
    assert_eq!(look(&generation.root, "tool").ino(), look(&generation.root, "second").ino());
    let time = |root: &Path| (look(root, "tool").mtime(), look(root, "tool").mtime_nsec());
    assert_eq!(time(&generation.root), time(&root));
}
