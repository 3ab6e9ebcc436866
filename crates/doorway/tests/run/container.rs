//! The container file and the example for Kubernetes, as far as they can be tried without either:
//! what they name exists, and their probes tell a node that cannot decide from one that is dead.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::members::group::Group;
use crate::place::{DOORWAY, Place};

/// The socket and the settings of the node of a machine, where the command looks for them.
const SOCKET: &str = "/run/doorway/socket";
const FILE: &str = "/etc/doorway/doorway.toml";

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(file)
}

/// The documents of the example for Kubernetes, by their kinds.
fn manifests() -> BTreeMap<String, Value> {
    let text = fs::read_to_string(packaging("kubernetes/doorway.yaml")).expect("a file");
    let documents = serde_yaml_ng::Deserializer::from_str(&text);
    let read = |document| serde::Deserialize::deserialize(document).expect("it is YAML");
    let documents = documents.map(|document| -> Value { read(document) });
    documents.map(|it| (it["kind"].as_str().expect("a kind").to_owned(), it)).collect()
}

/// The one container of the example.
fn container(manifests: &BTreeMap<String, Value>) -> Value {
    let pod = &manifests["StatefulSet"]["spec"]["template"]["spec"];
    let containers = pod["containers"].as_array().expect("containers");
    assert_eq!(containers.len(), 1);
    containers[0].clone()
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|word| word.as_str().expect("a word")).collect()
}

/// The named ports of a list.
fn ports(list: &Value, key: &str) -> BTreeMap<String, u64> {
    let port = |it: &Value| Some((it["name"].as_str()?.to_owned(), it[key].as_u64()?));
    list.as_array().expect("ports").iter().map(|it| port(it).expect("a named port")).collect()
}

/// The settings of the example for this pod, with certificates of a test and these addresses.
fn settings(manifests: &BTreeMap<String, Value>, place: &Place, pod: &str) -> String {
    let text = manifests["ConfigMap"]["data"]["doorway.toml"].as_str().expect("settings");
    let place = place.directory.to_str().expect("UTF-8");
    text.replace("@NODE@", pod)
        .replace("/etc/doorway-certificates/", &format!("{place}/certificates/"))
        .replace("/var/lib/doorway", &format!("{place}/{pod}"))
}

/// The value after a word of the container file, at the beginning of a line.
fn instructions(word: &str) -> Vec<String> {
    let text = fs::read_to_string(packaging("container/Containerfile")).expect("a file");
    let text = text.replace("\\\n", " ");
    let lines = text.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    lines.map(str::to_owned).collect()
}

/// A list of words in the container file.
fn exec_form(text: &str) -> Vec<String> {
    serde_json::from_str(text).expect("the exec form is JSON")
}

#[test]
fn the_settings_of_the_example_are_right_for_every_pod() {
    let manifests = manifests();
    let (set, place) = (&manifests["StatefulSet"]["spec"], Place::empty());
    let replicas = set["replicas"].as_u64().expect("a number");
    place.ca("init --group shop --dir ca");
    fs::create_dir(place.file("certificates")).unwrap();
    fs::copy(place.file("ca/ca.crt"), place.file("certificates/ca.crt")).unwrap();
    for pod in (0..replicas).map(|index| format!("doorway-{index}")) {
        place.ca(&format!("node {pod} --dir ca --to certificates"));
        let text = settings(&manifests, &place, &pod);
        let name = format!("{pod}.doorway.default.svc.cluster.local:7001");
        assert!(text.matches(&name).count() >= 2, "it is in `address` and in `join`: {text}");
        fs::write(place.file("doorway.toml"), text).unwrap();
        let mut check = Command::new(DOORWAY);
        check.args(["serve", "--check", "--config"]).arg(place.file("doorway.toml"));
        let done = check.output().unwrap();
        assert!(done.status.success() && done.stderr.is_empty(), "{pod}: {done:?}");
    }
    assert_eq!(set["serviceName"], manifests["Service"]["metadata"]["name"]);
    assert_eq!(manifests["Service"]["spec"]["clusterIP"], "None");
    assert_eq!(manifests["Service"]["spec"]["publishNotReadyAddresses"], true);
}

#[test]
fn the_ports_the_volumes_and_the_user_of_the_example_are_those_of_the_image() {
    let manifests = manifests();
    let (pod, container) =
        (&manifests["StatefulSet"]["spec"]["template"]["spec"], container(&manifests));
    let exposed = instructions("EXPOSE").concat();
    let exposed: BTreeSet<u64> = exposed.split(' ').map(|port| port.parse().unwrap()).collect();
    let container_ports = ports(&container["ports"], "containerPort");
    assert_eq!(container_ports.values().copied().collect::<BTreeSet<_>>(), exposed);
    assert_eq!(ports(&manifests["Service"]["spec"]["ports"], "port"), container_ports);
    let text = manifests["ConfigMap"]["data"]["doorway.toml"].as_str().unwrap();
    for port in exposed {
        assert!(text.contains(&format!(":{port}\"")), "the settings use {port}");
    }
    let user = instructions("USER").concat();
    let (uid, gid) = user.split_once(':').unwrap();
    let context = &pod["securityContext"];
    for (key, number) in [("runAsUser", uid), ("runAsGroup", gid), ("fsGroup", gid)] {
        assert_eq!(context[key].as_u64(), number.parse().ok(), "{key}");
    }
    assert!(uid != "0" && context["runAsNonRoot"] == true);
    let mounts = container["volumeMounts"].as_array().unwrap();
    let mounted = |name: &str| {
        let mount = mounts.iter().find(|mount| mount["name"] == name).expect("a mount");
        mount["mountPath"].as_str().unwrap().to_owned()
    };
    let [data] = exec_form(&instructions("VOLUME").concat()).try_into().unwrap();
    assert_eq!(mounted("data"), data);
    assert!(text.contains(&format!("data = \"{data}\"")));
    assert_eq!(format!("{}/socket", mounted("run")), SOCKET);
    assert!(text.contains(&format!("ca = \"{}/ca.crt\"", mounted("certificates"))));
    // What the command reads and writes is mounted, and the name stands where the settings need it.
    let line = words(&container["args"]).concat();
    assert!(line.contains(&format!("{}/doorway.toml > ", mounted("settings"))), "{line}");
    assert!(line.contains(&format!("--config {}/doorway.toml", mounted("etc"))), "{line}");
    let made = instructions("RUN").concat();
    for directory in [mounted("run"), mounted("etc"), data] {
        assert!(made.contains(&directory), "the image makes {directory}");
    }
    let volumes = pod["volumes"].as_array().unwrap().iter();
    let claims = manifests["StatefulSet"]["spec"]["volumeClaimTemplates"].as_array().unwrap();
    let names =
        volumes.map(|it| &it["name"]).chain(claims.iter().map(|it| &it["metadata"]["name"]));
    let names: BTreeSet<&str> = names.map(|name| name.as_str().unwrap()).collect();
    let wanted: BTreeSet<&str> = mounts.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, wanted);
}

#[test]
fn the_image_is_built_from_what_is_here_and_runs_what_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    assert!(root.join("Cargo.lock").exists(), "--locked needs it");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let minimum = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let minimum = minimum.expect("a minimum").trim_matches('"');
    let from = instructions("FROM");
    assert!(from[0].starts_with(&format!("rust:{minimum}-")), "{from:?}");
    let build = instructions("RUN").into_iter().find(|run| run.starts_with("cargo ")).unwrap();
    assert!(build.ends_with("--package doorway"), "{build}");
    let copied = instructions("COPY --from=build").concat();
    let (from, to) = copied.split_once(' ').unwrap();
    assert!(from.ends_with("/target/release/doorway"), "{from}");
    assert_eq!(exec_form(&instructions("ENTRYPOINT").concat()), [to]);
    let mut serve = exec_form(&instructions("CMD").concat());
    assert_eq!(serve.pop().as_deref(), Some(FILE));
    let help = Command::new(DOORWAY).args(&serve).args(["/dev/null", "--check"]).output().unwrap();
    assert!(help.status.success(), "{serve:?} are words of the command: {help:?}");
}

#[test]
fn the_probes_tell_a_node_that_cannot_decide_from_one_that_is_dead() {
    let manifests = manifests();
    let container = container(&manifests);
    let check = instructions("HEALTHCHECK").concat();
    let check = exec_form(check.split_once("CMD ").unwrap().1);
    let mut probes = vec![check.iter().map(String::as_str).collect::<Vec<_>>()];
    for probe in ["startupProbe", "livenessProbe"] {
        probes.push(words(&container[probe]["exec"]["command"]));
    }
    let ready = &container["readinessProbe"]["httpGet"];
    assert_eq!((&ready["scheme"], &ready["port"]), (&"HTTPS".into(), &"https".into()));
    let path = ready["path"].as_str().unwrap();
    let mut group = Group::new();
    let alive = |group: &Group, node: usize| {
        let lives = |probe: &Vec<&str>| {
            assert_eq!(probe[0], "doorway");
            group.output(node, &probe[1..].join(" ")).status.success()
        };
        let answers: BTreeSet<bool> = probes.iter().map(lives).collect();
        assert_eq!(answers.len(), 1, "the probes agree");
        answers.contains(&true)
    };
    let status = |group: &Group, node| group.get(node, path)[..12].to_owned();
    for node in 0..3 {
        group.start(node);
    }
    assert!(alive(&group, 0));
    assert_eq!(status(&group, 0), "HTTP/1.1 503", "the group is not founded");
    group.answer(0, "members init");
    (0..3).for_each(|node| group.complete(node));
    assert_eq!(status(&group, 0), "HTTP/1.1 200");
    group.kill(1);
    group.kill(2);
    crate::place::until("it cannot decide", || status(&group, 0) == "HTTP/1.1 503");
    assert!(alive(&group, 0), "a restart would not help");
    group.kill(0);
    assert!(!alive(&group, 0));
}
