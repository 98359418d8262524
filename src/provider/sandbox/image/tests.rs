use std::os::unix::fs::symlink;

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
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

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
