//! Certificates that our authority makes and a configuration names, and their mistakes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use doorway_daemon::ca::{self, Authority, Leaf};
use doorway_daemon::certificate::{Facts, certificates};
use doorway_daemon::doctor::{self, Verdict};
use doorway_daemon::settings::{Overrides, Proof, Settings, TlsFiles};
use doorway_daemon::tls::{Certificates, ending};
use doorway_protocol::{Name, Scope};
use doorway_sessions::principal::Right;
use time::{Duration, OffsetDateTime};

/// An empty directory for one test, removed after it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory for the test");
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file of the test");
        path
    }

    fn leaf<'a>(&'a self, name: &'a str, addresses: &'a [String]) -> Leaf<'a> {
        Leaf { name, addresses, days: 365, to: &self.0, renew: false }
    }

    /// An authority of the group `shop` and the certificates of a node `a` and a client `ci`.
    fn furnished(self) -> Self {
        ca::init(&self.0, "shop", 3650).expect("an authority");
        let authority = Authority::open(&self.0).expect("the authority that was made");
        let addresses = ["a.example".into(), "10.0.0.1".into()];
        authority.node(&self.leaf("a", &addresses)).expect("a certificate");
        authority.client(&self.leaf("ci", &[])).expect("a certificate");
        self
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const GROUP: &str = "
group = \"shop\"
node = \"a\"
data = \"data\"
socket = \"@doorway-no-such-socket\"
[[member]]
name = \"a\"
address = \"127.0.0.1:0\"
[[member]]
name = \"b\"
address = \"127.0.0.1:1\"
[sessions]
listen = \"127.0.0.1:0\"
[[client]]
name = \"ci\"
rights = [{ names = \"deploy/*\", may = [\"acquire\"] }]
[tls]
ca = \"ca.crt\"
certificate = \"a.crt\"
key = \"a.key\"
";

fn load(file: &Path) -> Result<Settings, String> {
    Settings::load(file, &Overrides::default()).map_err(|mistakes| mistakes.to_string())
}

#[test]
fn the_authority_makes_the_certificates_that_a_configuration_needs() {
    let place = Place::new("good").furnished();
    let settings = load(&place.write("doorway.toml", GROUP)).unwrap();
    assert_eq!(settings.scope, Scope::Cluster);
    assert_eq!(settings.tls.as_ref().map(|tls| &tls.key), Some(&place.0.join("a.key")));
    let mode = |name| fs::metadata(place.0.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("ca.key"), mode("a.key")), (0o600, 0o600));
    let facts = Facts::all(&fs::read(place.0.join("a.crt")).unwrap()).unwrap().remove(0);
    assert_eq!(facts.names, ["a.shop.doorway", "a.example"]);
    assert_eq!(facts.addresses, ["10.0.0.1".parse::<std::net::IpAddr>().unwrap()]);
    assert!((364..=365).contains(&facts.days_left(OffsetDateTime::now_utc())));
}

#[test]
fn a_client_is_known_by_its_certificate() {
    let place = Place::new("client").furnished();
    let settings = load(&place.write("doorway.toml", GROUP)).unwrap();
    let shown =
        |name: &str| certificates(&fs::read(place.0.join(name)).unwrap()).unwrap().remove(0);
    let ci = settings.principal(Proof::Certificate(&shown("ci.crt"))).unwrap();
    assert_eq!(ci.name, "client ci");
    assert!(ci.rights.may(Right::Acquire, &Name::new("deploy/web").unwrap()));
    assert!(!ci.rights.may(Right::Acquire, &Name::new("other").unwrap()));
    assert!(
        settings.principal(Proof::Certificate(&shown("a.crt"))).is_none(),
        "a node is not a client"
    );
    let authority = Authority::open(&place.0).unwrap();
    authority.client(&place.leaf("stranger", &[])).unwrap();
    assert!(settings.principal(Proof::Certificate(&shown("stranger.crt"))).is_none());
}

#[test]
fn wrong_certificates_are_reported_with_their_lines() {
    let place = Place::new("bad").furnished();
    let other = Place::new("bad-other").furnished();
    let file = place.write("doorway.toml", GROUP);
    let line = |key: &str| {
        let key = format!("{key} = ");
        GROUP.lines().position(|line| line.starts_with(&key)).unwrap() + 1
    };
    let says = |text: &str, parts: &[&str]| {
        fs::write(&file, text).unwrap();
        let said = load(&file).unwrap_err();
        for part in parts {
            assert!(said.contains(part), "{part:?} is not in {said}");
        }
        assert_eq!(said.lines().count(), parts.len() + 1, "{said}");
    };
    let wrong_name = format!("doorway.toml:{}: ", line("certificate"));
    says(
        &GROUP.replace("\"a.crt\"", "\"ci.crt\"").replace("\"a.key\"", "\"ci.key\""),
        &[&format!(
            "{wrong_name}{}: it is for ci.client.shop.doorway; this node needs one for \
            a.shop.doorway",
            place.0.join("ci.crt").display()
        )],
    );
    let key = format!("doorway.toml:{}: ", line("key"));
    says(&GROUP.replace("a.key", "ci.key"), &[&key]);
    let theirs = |name: &str| format!("{:?}", other.0.join(name));
    let text = GROUP.replace("\"a.crt\"", &theirs("a.crt")).replace("\"a.key\"", &theirs("a.key"));
    says(&text, &["it was not issued by the authority in `ca`"]);
    let text = GROUP.replace("node = \"a\"", "node = \"b\"");
    says(&text, &["it is for a.shop.doorway, a.example; this node needs one for b.shop.doorway"]);
    let ca = format!("doorway.toml:{}: ", line("ca"));
    says(&GROUP.replace("\"ca.crt\"", "\"a.crt\""), &[&ca]);
    says(&GROUP.replace("ca.crt", "doorway.toml").replace("a.key", "ca.crt"), &[&ca, &key]);
}

#[test]
fn nothing_is_overwritten() {
    let place = Place::new("keep").furnished();
    let key = fs::read(place.0.join("ca.key")).unwrap();
    let said = ca::init(&place.0, "shop", 10).unwrap_err().to_string();
    assert!(said.contains("exists already"), "{said}");
    let authority = Authority::open(&place.0).unwrap();
    let said = authority.node(&place.leaf("a", &[])).unwrap_err().to_string();
    assert!(said.contains("`--renew`"), "{said}");
    assert_eq!(fs::read(place.0.join("ca.key")).unwrap(), key);
}

#[test]
fn names_that_would_impersonate_another_are_refused() {
    let place = Place::new("names").furnished();
    let authority = Authority::open(&place.0).unwrap();
    for name in ["", "A", "a.b", "x.client", "-a", "a/b", "..", "b.shop.doorway"] {
        assert!(authority.node(&place.leaf(name, &[])).is_err(), "{name}");
        assert!(authority.client(&place.leaf(name, &[])).is_err(), "{name}");
    }
    for address in ["", "a b", "b.shop.doorway", "X.SHOP.DOORWAY", "doorway", "*.example", "a..b"] {
        let addresses = [address.to_owned()];
        assert!(authority.node(&place.leaf("c", &addresses)).is_err(), "{address}");
    }
    assert!(!place.0.join("c.key").exists(), "a refusal leaves nothing behind");
    assert!(ca::init(&place.0.join("x"), "Shop", 10).is_err());
    assert!(Authority::open(&place.0.join("nothing")).is_err());
}

#[test]
fn a_renewed_certificate_keeps_key_and_addresses() {
    let place = Place::new("renew").furnished();
    let read = |name: &str| fs::read(place.0.join(name)).unwrap();
    let (old, key) = (read("a.crt"), read("a.key"));
    let authority = Authority::open(&place.0).unwrap();
    let made = authority.node(&Leaf { days: 700, renew: true, ..place.leaf("a", &[]) }).unwrap();
    assert_eq!(made.names, ["a.shop.doorway", "a.example", "10.0.0.1"]);
    assert_ne!(read("a.crt"), old);
    assert_eq!(read("a.key"), key);
    load(&place.write("doorway.toml", GROUP)).expect("it is as good as the old one");
    let long = Leaf { days: 36_500, renew: true, ..place.leaf("a", &[]) };
    authority.node(&long).unwrap();
    let facts = Facts::all(&read("a.crt")).unwrap().remove(0);
    let left = facts.days_left(OffsetDateTime::now_utc());
    assert!((3649..=3650).contains(&left), "not beyond its authority: {left}");
}

#[test]
fn the_expiry_of_a_certificate_is_reported_in_time() {
    let place = Place::new("end").furnished();
    let tls = TlsFiles {
        ca: place.0.join("ca.crt"),
        certificate: place.0.join("a.crt"),
        key: place.0.join("a.key"),
    };
    let tls = tls.read().unwrap();
    let now = OffsetDateTime::now_utc();
    assert_eq!(ending(&tls, now + Duration::days(334)), Vec::<String>::new());
    let soon = ending(&tls, now + Duration::days(336));
    assert!(
        soon.len() == 1 && soon[0].contains("the certificate of this node ends on"),
        "{soon:?}"
    );
    assert_eq!(ending(&tls, now + Duration::days(3640)).len(), 2);
}

#[test]
fn a_bad_new_certificate_is_refused_and_the_old_one_stays() {
    let place = Place::new("reload").furnished();
    let files = TlsFiles {
        ca: place.0.join("ca.crt"),
        certificate: place.0.join("a.crt"),
        key: place.0.join("a.key"),
    };
    let shown = Certificates::open(files, "a.shop.doorway".into()).unwrap();
    let before = shown.server();
    fs::copy(place.0.join("ci.crt"), place.0.join("a.crt")).unwrap();
    let said = shown.reload().unwrap_err().to_string();
    assert!(said.contains("it is for ci.client.shop.doorway"), "{said}");
    assert!(std::sync::Arc::ptr_eq(&before, &shown.server()));
    fs::remove_file(place.0.join("a.crt")).unwrap();
    assert!(shown.reload().unwrap_err().to_string().contains("cannot read"));
    fs::remove_file(place.0.join("a.key")).unwrap();
    let authority = Authority::open(&place.0).unwrap();
    authority.node(&place.leaf("a", &[])).unwrap();
    shown.reload().expect("a good one is taken");
    assert!(!std::sync::Arc::ptr_eq(&before, &shown.server()));
}

/// The files are checked every few seconds; the clock of the test jumps ahead.
#[tokio::test(start_paused = true)]
async fn new_certificates_are_loaded_when_they_appear_and_on_a_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let place = Place::new("watch").furnished();
    let files = TlsFiles {
        ca: place.0.join("ca.crt"),
        certificate: place.0.join("a.crt"),
        key: place.0.join("a.key"),
    };
    let shown = Certificates::open(files, "a.shop.doorway".into()).unwrap();
    let _registered = signal(SignalKind::hangup()).unwrap();
    let (told, mut tell) = tokio::sync::mpsc::unbounded_channel();
    let watch = tokio::spawn({
        let shown = std::sync::Arc::clone(&shown);
        async move {
            let renewed = |tls: &doorway_node::TlsConfig, _| {
                told.send(tls.certificate.clone()).map_err(|error| error.to_string())
            };
            shown.watch(renewed).await;
        }
    });
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    assert!(tell.try_recv().is_err(), "nothing is new");
    let authority = Authority::open(&place.0).unwrap();
    authority.node(&Leaf { renew: true, ..place.leaf("a", &[]) }).unwrap();
    assert_eq!(tell.recv().await.unwrap(), fs::read(place.0.join("a.crt")).unwrap());
    fs::write(place.0.join("a.crt"), "nonsense").unwrap();
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    assert!(tell.try_recv().is_err(), "what cannot be used is not taken");
    authority.node(&Leaf { renew: true, ..place.leaf("a", &[]) }).unwrap();
    tell.recv().await.unwrap();
    // The files have not changed, but the signal makes the node read them again.
    tokio::time::resume(); // A signal takes real time.
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP).unwrap();
    let late = std::time::Duration::from_secs(30);
    tokio::time::timeout(late, tell.recv()).await.expect("the signal was heard").unwrap();
    watch.abort();
}

#[test]
fn the_doctor_finds_what_is_wrong() {
    let place = Place::new("doctor").furnished();
    let file = place.write("doorway.toml", GROUP);
    fs::set_permissions(place.0.join("a.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let findings = doctor::examine(Some(&file), &Overrides::default());
    let find = |part: &str| {
        let found = findings.iter().find(|finding| finding.what.contains(part));
        found.unwrap_or_else(|| panic!("{part:?} is not in {findings:#?}"))
    };
    assert_eq!(find("doorway.toml").verdict, Verdict::Ok);
    assert_eq!(find("the certificate of this node is good until").verdict, Verdict::Ok);
    assert_eq!(find("CLOCK_BOOTTIME runs").verdict, Verdict::Ok);
    assert_eq!(find("is open to everyone: its mode is 644").verdict, Verdict::Warning);
    assert_eq!(find("no node runs at @doorway-no-such-socket").verdict, Verdict::Warning);
    assert_eq!(find("b cannot be reached at 127.0.0.1:1").verdict, Verdict::Wrong);
    assert_eq!(find("a (this node) can listen").verdict, Verdict::Ok);
    for finding in &findings {
        assert_eq!(finding.remedy.is_none(), finding.verdict == Verdict::Ok, "{finding:?}");
    }
    let none = doctor::examine(Some(&place.0.join("no.toml")), &Overrides::default());
    assert!(none.iter().any(|finding| finding.verdict == Verdict::Wrong), "{none:#?}");
}
