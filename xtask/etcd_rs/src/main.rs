//! The locks of a program that uses the crate `etcd-client`, as it is.
//!
//! `etcd-rs check ENDPOINTS CERTIFICATES` tries what the client can do. `etcd-rs enter ENDPOINTS
//! CERTIFICATES LOG NAME` enters the lock `shared` once, and writes into LOG when it was inside,
//! with the fence. `etcd-rs hold ENDPOINTS CERTIFICATES LOCK` enters LOCK, says `in`, and stays
//! inside for a minute. ENDPOINTS are separated by commas.

use std::error::Error;
use std::fs::{File, OpenOptions, read_to_string};
use std::io::Write as _;
use std::path::Path;
use std::pin::pin;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use etcd_client::{
    Certificate, Client, Compare, CompareOp, ConnectOptions, Error as EtcdError, Identity,
    LockOptions, LockResponse, PutOptions, ResignOptions, TlsOptions, Txn, TxnOp,
};
use tokio::time::timeout;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Longer than anything may take.
const LONG: Duration = Duration::from_secs(20);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["check", endpoints, place] => check(endpoints, place.as_ref()).await?,
        ["enter", endpoints, place, log, name] => {
            enter(&mut connect(endpoints, place.as_ref()).await?, log, name).await?;
        }
        ["hold", endpoints, place, name] => {
            let mut client = connect(endpoints, place.as_ref()).await?;
            // Nobody renews the lease, and another process starts meanwhile.
            lock_for(&mut client, name, 15).await?;
            println!("in");
            thread::sleep(Duration::from_mins(1));
        }
        _ => {
            return Err("usage: etcd-rs check|enter|hold ENDPOINTS CERTIFICATES [...]".into());
        }
    }
    println!("all is well");
    Ok(())
}

async fn connect(endpoints: &str, place: &Path) -> Outcome<Client> {
    let read = |name| read_to_string(place.join(name));
    let tls = TlsOptions::new()
        .ca_certificate(Certificate::from_pem(read("ca.crt")?))
        .identity(Identity::from_pem(read("ci.crt")?, read("ci.key")?));
    let options = ConnectOptions::new().with_tls(tls).with_timeout(LONG);
    let endpoints: Vec<&str> = endpoints.split(',').collect();
    Ok(Client::connect(endpoints, Some(options)).await?)
}

fn fence(lock: &LockResponse) -> Outcome<i64> {
    Ok(lock.header().ok_or("a response without a header")?.revision())
}

/// Enter a lock by a lease of its own.
async fn lock(client: &mut Client, name: &str) -> Result<(i64, LockResponse), EtcdError> {
    lock_for(client, name, 5).await
}

/// Enter a lock by a lease with this time to live, in seconds.
async fn lock_for(
    client: &mut Client,
    name: &str,
    ttl: i64,
) -> Result<(i64, LockResponse), EtcdError> {
    let lease = client.lease_grant(ttl, None).await?.id();
    let lock = client.lock(name, Some(LockOptions::new().with_lease(lease))).await?;
    Ok((lease, lock))
}

async fn enter(client: &mut Client, log: &str, name: &str) -> Outcome {
    let (lease, lock) = lock(client, "shared").await?;
    let fence = fence(&lock)?;
    let mut log = OpenOptions::new().append(true).create(true).open(log)?;
    note(&mut log, "in", fence, name)?;
    thread::sleep(Duration::from_millis(20));
    note(&mut log, "out", fence, name)?;
    client.unlock(lock.key()).await?;
    client.lease_revoke(lease).await?;
    Ok(())
}

fn note(log: &mut File, what: &str, fence: i64, name: &str) -> Outcome {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    Ok(log.write_all(format!("{what} {fence} {now} {name}\n").as_bytes())?)
}

async fn check(endpoints: &str, place: &Path) -> Outcome {
    let mut one = connect(endpoints, place).await?;
    let mut other = connect(endpoints, place).await?;
    locks(&mut one, &mut other).await?;
    leases(&mut one, &mut other).await?;
    elections(&mut one, &mut other).await?;
    transactions(&mut one).await?;
    let refused = one.put("plain", "data", None).await.err().ok_or("a key without a lease")?;
    assert!(matches!(refused, EtcdError::GRpcStatus(_)), "{refused}");
    Ok(())
}

/// A client that waits gets the lock when it is released, with a higher fence.
async fn locks(one: &mut Client, other: &mut Client) -> Outcome {
    let (lease, mine) = lock(one, "k").await?;
    let (another, yours) = {
        let mut waiting = pin!(lock(other, "k"));
        assert!(timeout(Duration::from_millis(300), &mut waiting).await.is_err(), "two are inside");
        one.unlock(mine.key()).await?;
        timeout(LONG, waiting).await??
    };
    assert!(fence(&yours)? > fence(&mine)?);
    other.unlock(yours.key()).await?;
    one.lease_revoke(lease).await?;
    other.lease_revoke(another).await?;
    Ok(())
}

/// A lease that is kept alive has all its time, and the lock of a revoked lease is free.
async fn leases(one: &mut Client, other: &mut Client) -> Outcome {
    let (lease, _) = lock(one, "k").await?;
    let (mut keeper, mut answers) = one.lease_keep_alive(lease).await?;
    keeper.keep_alive().await?;
    let answer = timeout(LONG, answers.message()).await??.ok_or("no answer")?;
    assert_eq!((answer.id(), answer.ttl()), (lease, 5));
    let time = one.lease_time_to_live(lease, None).await?;
    assert!((1..=5).contains(&time.ttl()), "{time:?}");
    assert_eq!(time.granted_ttl(), 5);
    one.lease_revoke(lease).await?;
    let (lease, yours) = timeout(LONG, lock(other, "k")).await??;
    assert!(fence(&yours)? > 0);
    other.lease_revoke(lease).await?;
    Ok(())
}

async fn elections(one: &mut Client, other: &mut Client) -> Outcome {
    let lease = one.lease_grant(5, None).await?.id();
    let mut elected = one.campaign("boss", "me", lease).await?;
    let leader = elected.take_leader().ok_or("no leader")?;
    let seen = other.leader("boss").await?;
    assert_eq!(seen.kv().ok_or("no leader is seen")?.value(), b"me");
    one.resign(Some(ResignOptions::new().with_leader(leader))).await?;
    assert!(other.leader("boss").await.is_err(), "there is no leader any more");
    one.lease_revoke(lease).await?;
    Ok(())
}

/// A key that exists only once, as programs without the lock service do it.
async fn transactions(client: &mut Client) -> Outcome {
    let lease = client.lease_grant(5, None).await?.id();
    let absent = || Compare::create_revision("once", CompareOp::Equal, 0);
    let put = || TxnOp::put("once", "me", Some(PutOptions::new().with_lease(lease)));
    let first = client.txn(Txn::new().when([absent()]).and_then([put()])).await?;
    let second = client.txn(Txn::new().when([absent()]).and_then([put()])).await?;
    assert_eq!((first.succeeded(), second.succeeded()), (true, false));
    let held = client.get("once", None).await?;
    assert_eq!(held.kvs().first().ok_or("it is held")?.value(), b"me");
    client.delete("once", None).await?;
    assert!(client.get("once", None).await?.kvs().is_empty());
    client.lease_revoke(lease).await?;
    Ok(())
}
