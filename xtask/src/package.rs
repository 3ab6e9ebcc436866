//! `cargo xtask package`: a Debian package of the command and the service, built by dpkg-deb.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::dependencies;
use crate::run::{cargo, command, output, quietly, succeed, target};

mod trial;

pub(crate) use trial::try_out;

/// The directory of the package and of everything that it is made of.
const DIRECTORY: &str = "target/package";
/// The files that are packaged as they are, and their places.
const FILES: [(&str, &str); 6] = [
    ("packaging/doorway.service", "usr/lib/systemd/system/doorway.service"),
    ("packaging/doorway.sysusers", "usr/lib/sysusers.d/doorway.conf"),
    ("packaging/doorway.toml", EXAMPLE),
    (
        "packaging/prometheus/doorway.rules.yml",
        "usr/share/doc/doorway/examples/prometheus/doorway.rules.yml",
    ),
    ("packaging/grafana/doorway.json", "usr/share/doc/doorway/examples/grafana/doorway.json"),
    ("packaging/debian/copyright", "usr/share/doc/doorway/copyright"),
];
/// The commented configuration. It is an example and not in /etc: clients use the machine's node
/// instead of their user's where /etc/doorway exists, so an administrator has to create it.
const EXAMPLE: &str = "usr/share/doc/doorway/examples/doorway.toml";
/// The shells for which the command writes completions, and their places.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/doorway"),
    ("fish", "usr/share/fish/vendor_completions.d/doorway.fish"),
    ("zsh", "usr/share/zsh/vendor-completions/_doorway"),
];
/// The files for dpkg itself, in `packaging/debian`.
const SCRIPTS: [&str; 3] = ["postinst", "postrm", "prerm"];
/// The libraries that every Rust program needs, for a machine without dpkg-shlibdeps.
const LIBRARIES: &str = "libc6, libgcc-s1";

/// Build the command for release, and the package.
pub(crate) fn build() -> anyhow::Result<()> {
    succeed(&mut cargo("build --release --locked --package doorway"))?;
    let package = pack(&target().join("release/doorway"), "xz")?;
    println!("wrote {}", package.display());
    Ok(())
}

/// Make a package of this program. `compression` is a name that `dpkg-deb -Z` knows.
fn pack(program: &Path, compression: &str) -> anyhow::Result<PathBuf> {
    let root = Path::new(DIRECTORY).join("root");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    lay_out(program, &root)?;
    let control = control(&root)?;
    let debian = root.join("DEBIAN");
    write(&debian.join("control"), &control.text)?;
    for name in SCRIPTS {
        copy(&Path::new("packaging/debian").join(name), &debian.join(name))?;
        fs::set_permissions(debian.join(name), fs::Permissions::from_mode(0o755))?;
    }
    // Whatever the umask is, everyone may read the files of a package.
    succeed(command("chmod -R u=rwX,go=rX").arg(&root))?;
    let package = Path::new(DIRECTORY).join(control.file);
    let mut build = command(&format!("dpkg-deb --root-owner-group -Z{compression} --build"));
    build.args([&root, &package]).env("SOURCE_DATE_EPOCH", epoch());
    succeed(&mut build)?;
    Ok(package)
}

/// Put every file of the package into its place below `root`.
fn lay_out(program: &Path, root: &Path) -> anyhow::Result<()> {
    let installed = root.join("usr/bin/doorway");
    copy(program, &installed)?;
    fs::set_permissions(&installed, fs::Permissions::from_mode(0o755))?;
    // A release is stripped already; the program of the tests is not.
    quietly(Command::new("strip").arg(&installed));
    for (from, to) in FILES {
        copy(Path::new(from), &root.join(to))?;
    }
    for (shell, to) in COMPLETIONS {
        let script = output(Command::new(&installed).args(["completions", shell]))?;
        write(&root.join(to), &script)?;
    }
    let pages = root.join("usr/share/man/man1");
    output(Command::new(&installed).arg("man").arg(&pages))?;
    let documents = root.join("usr/share/doc/doorway");
    copy(Path::new("CHANGELOG.md"), &documents.join("changelog"))?;
    write(&documents.join("changelog.Debian"), &changelog()?)?;
    write(&documents.join("third-party-licences"), &third_party_licences()?)?;
    for page in fs::read_dir(pages)? {
        compress(&page?.path())?;
    }
    for document in ["changelog", "changelog.Debian", "third-party-licences"] {
        compress(&documents.join(document))?;
    }
    Ok(())
}

/// The control file, and the name of the package file.
struct Control {
    text: String,
    file: String,
}

fn control(root: &Path) -> anyhow::Result<Control> {
    let architecture = output(&mut command("dpkg --print-architecture"))?;
    let size = output(command("du --summarize --apparent-size --block-size=1K").arg(root))?;
    let template = fs::read_to_string("packaging/debian/control")?;
    let (version, architecture) = (version(), architecture.trim());
    let text = template
        .replace("@VERSION@", &version)
        .replace("@ARCHITECTURE@", architecture)
        .replace("@MAINTAINER@", &maintainer())
        .replace("@SIZE@", size.split_whitespace().next().context("du printed nothing")?)
        .replace("@DEPENDS@", &depends(root)?);
    Ok(Control { text, file: format!("doorway_{version}_{architecture}.deb") })
}

/// The packages whose libraries the program uses. dpkg-shlibdeps knows their versions.
fn depends(root: &Path) -> anyhow::Result<String> {
    let place = Path::new(DIRECTORY).join("shlibdeps");
    // It reads the source package's control file, of which there is none here.
    let control = "Source: doorway\n\nPackage: doorway\nArchitecture: any\n";
    write(&place.join("debian/control"), control)?;
    let program = fs::canonicalize(root.join("usr/bin/doorway"))?;
    let found = output(command("dpkg-shlibdeps -O").arg(program).current_dir(place));
    let found = found.ok().and_then(|text| Some(text.trim().split_once('=')?.1.to_owned()));
    Ok(found.unwrap_or_else(|| LIBRARIES.to_owned()))
}

/// The version of the workspace, as the first package of it.
fn version() -> String {
    format!("{}-1", env!("CARGO_PKG_VERSION"))
}

/// The maintainer, by the variables that Debian's own tools read.
fn maintainer() -> String {
    let variable = |name: &str, other: &str| env::var(name).unwrap_or_else(|_| other.to_owned());
    let name = variable("DEBFULLNAME", "The Doorway authors");
    format!("{name} <{}>", variable("DEBEMAIL", "doorway@localhost"))
}

/// The seconds since 1970 of the last commit, so that the same commit makes the same package.
fn epoch() -> String {
    let commit = || output(&mut command("git log -1 --format=%ct")).unwrap_or_default();
    env::var("SOURCE_DATE_EPOCH").unwrap_or_else(|_| commit()).trim().to_owned()
}

/// The changelog of the package. That of Doorway is a file of its own.
fn changelog() -> anyhow::Result<String> {
    let date = output(Command::new("date").args(["-R", "--utc", &format!("--date=@{}", epoch())]))?;
    let (version, who) = (version(), maintainer());
    let text = "See changelog.gz for the changes of Doorway.";
    Ok(format!("doorway ({version}) unstable; urgency=medium\n\n  * {text}\n\n -- {who}  {date}"))
}

/// The licences of all libraries that the program contains: their licences ask for that.
fn third_party_licences() -> anyhow::Result<String> {
    let words = "tree --locked --package doorway --edges normal --prefix none --format {p}";
    let linked = output(&mut cargo(words))?;
    let linked: BTreeSet<_> = linked.lines().filter_map(|line| line.split_once(" v")).collect();
    let mut sections = Vec::new();
    for package in dependencies::packages()? {
        let is_linked = |(name, version): &(&str, &str)| {
            package.name == *name && version.split(' ').next() == Some(&package.version)
        };
        if package.source.is_none() || !linked.iter().any(is_linked) {
            continue;
        }
        let licence = package.license.as_deref().unwrap_or("see below");
        sections.push(format!("==== {} {} ({licence})", package.name, package.version));
        for file in licence_files(&package.manifest_path)? {
            sections.push(fs::read_to_string(file)?.trim_end().to_owned());
        }
    }
    ensure!(!sections.is_empty(), "`cargo {words}` shows no libraries");
    Ok(sections.join("\n\n") + "\n")
}

/// The files beside a manifest that contain licences.
fn licence_files(manifest: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let directory = manifest.parent().unwrap_or(Path::new("."));
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let known = ["LICEN", "COPYING", "COPYRIGHT", "NOTICE"];
        if entry.file_type()?.is_file() && known.iter().any(|start| name.starts_with(start)) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    write(to, fs::read(from).with_context(|| from.display().to_string())?)
}

/// Write a file, and create the directories above it.
fn write(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, content).with_context(|| path.display().to_string())?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))?;
    Ok(())
}

/// Compress a file as Debian asks for: as small as can be, and without a time stamp.
fn compress(path: &Path) -> anyhow::Result<()> {
    output(command("gzip --best --no-name --force").arg(path)).map(drop)
}
