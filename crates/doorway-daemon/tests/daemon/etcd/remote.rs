//! Etcd clients over TCP: users, certificates and rights.

use doorway_daemon::listen::Protocols;
use serde_json::{Value, json};

use crate::http::client::{Answer, ask};
use crate::http::remote::{CI, Remote, TOKEN};

fn post(
    remote: &Remote,
    certificate: Option<&str>,
    token: Option<&str>,
    path: &str,
    body: &Value,
) -> Answer {
    let headers: Vec<(&str, &str)> = token.map(|token| ("token", token)).into_iter().collect();
    ask(remote.connect(certificate), "POST", &format!("/v3/{path}"), &headers, Some(body))
}

#[test]
fn clients_prove_who_they_are_by_a_user_or_a_certificate() {
    let remote = Remote::serving(Protocols::Etcd);
    let grant = json!({"TTL": 2});
    let unknown = post(&remote, None, None, "lease/grant", &grant).expect(401);
    assert!(unknown["error"].as_str().unwrap().contains("--user NAME:TOKEN"), "{unknown}");
    let log_in = |name: &str, password: &str| {
        let user = json!({"name": name, "password": password});
        post(&remote, None, None, "auth/authenticate", &user)
    };
    let token = log_in("all", TOKEN).expect(200)["token"].clone();
    let token = token.as_str().unwrap();
    post(&remote, None, Some(token), "lease/grant", &grant).expect(200);
    for (name, password) in [("all", "wrong"), ("ci", TOKEN), ("", TOKEN)] {
        let refused = log_in(name, password).expect(400);
        let told = refused["error"].as_str().unwrap();
        assert!(told.contains("authentication failed"), "{told}");
    }
    let refused = post(&remote, None, Some("wrong"), "lease/grant", &grant).expect(401);
    assert_eq!(refused["error"], "etcdserver: invalid auth token");
    post(&remote, Some("ci"), None, "lease/grant", &grant).expect(200);
    post(&remote, Some("stranger"), None, "lease/grant", &grant).expect(401);
}

#[test]
fn rights_and_leases_are_those_of_the_client() {
    let remote = Remote::serving(Protocols::Etcd);
    let lease = |token: &str| {
        let granted = post(&remote, None, Some(token), "lease/grant", &json!({"TTL": 2}));
        granted.expect(200)["ID"].as_str().unwrap().to_owned()
    };
    let (ci, all) = (lease(CI), lease(TOKEN));
    let lock = |token: &str, name: &str, lease: &str| {
        let name = data_encoding::BASE64.encode(name.as_bytes());
        let body = json!({"name": name, "lease": lease});
        post(&remote, None, Some(token), "lock/lock", &body)
    };
    let refused = lock(CI, "k", &ci).expect(403);
    assert_eq!(refused["error"], "client ci may not acquire `k`");
    let held = lock(CI, "deploy/k", &ci).expect(200);
    // A lease belongs to its client, even if others know its number.
    let refused = lock(TOKEN, "other", &ci).expect(500);
    assert_eq!(refused["error"], "etcdserver: requested lease not found");
    let id = json!({"ID": ci});
    post(&remote, None, Some(TOKEN), "lease/revoke", &id).expect(404);
    let unlock = json!({"key": held["key"]});
    post(&remote, None, Some(TOKEN), "lock/unlock", &unlock).expect(200);
    assert_eq!(remote.service.held(), 1, "it is not the client's own");
    lock(TOKEN, "other", &all).expect(200);
    post(&remote, None, Some(CI), "lock/unlock", &unlock).expect(200);
    assert_eq!(remote.service.held(), 1);
    let longer = post(&remote, None, Some(CI), "lease/grant", &json!({"TTL": 3})).expect(400);
    assert!(longer["error"].as_str().unwrap().contains("1 s to 2 s"), "{longer}");
}
