//! The locks of a program that uses the crate `redis`, as it is: `redis-rs SOCKET`.

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use redis::{
    Client, Commands as _, Connection, ErrorKind, ExistenceCheck, Script, ServerErrorKind,
    SetExpiry, SetOptions, Value,
};

/// As the manual of Redis recommends it.
const RELEASE: &str = r#"
if redis.call("get",KEYS[1]) == ARGV[1] then
    return redis.call("del",KEYS[1])
else
    return 0
end
"#;

/// The lock is extended only by its owner.
const EXTEND: &str = r#"
if redis.call("get", KEYS[1]) == ARGV[1] then
    return redis.call("pexpire", KEYS[1], ARGV[2])
else
    return 0
end
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let socket = std::env::args().nth(1).ok_or("usage: redis-rs SOCKET")?;
    for protocol in ["resp2", "resp3"] {
        let client = Client::open(format!("redis+unix://{socket}?protocol={protocol}"))?;
        one_client(&mut client.get_connection()?)?;
        many_clients(&client)?;
    }
    println!("all is well");
    Ok(())
}

/// Acquire a lock if it is free.
fn acquire(connection: &mut Connection, key: &str, value: &str) -> redis::RedisResult<bool> {
    let options = SetOptions::default()
        .conditional_set(ExistenceCheck::NX)
        .with_expiration(SetExpiry::PX(2000));
    let answer: Value = connection.set_options(key, value, options)?;
    Ok(answer == Value::Okay)
}

fn release(connection: &mut Connection, key: &str, value: &str) -> redis::RedisResult<i32> {
    Script::new(RELEASE).key(key).arg(value).invoke(connection)
}

fn one_client(connection: &mut Connection) -> redis::RedisResult<()> {
    assert!(acquire(connection, "report", "mine")?);
    assert!(!acquire(connection, "report", "yours")?, "it is held");
    assert_eq!(connection.get::<_, String>("report")?, "mine");
    assert_eq!(release(connection, "report", "yours")?, 0);
    let extended: i32 =
        Script::new(EXTEND).key("report").arg("mine").arg(5000).invoke(connection)?;
    assert_eq!(extended, 1);
    let left: i64 = connection.pttl("report")?;
    assert!((2001..=5000).contains(&left), "{left}");
    let fence: String = redis::cmd("DOORWAY.FENCE").arg("report").arg("mine").query(connection)?;
    assert!(fence.parse::<u64>().is_ok_and(|fence| fence > 0), "{fence}");
    assert_eq!(release(connection, "report", "mine")?, 1);
    assert_eq!(connection.get::<_, Option<String>>("report")?, None);
    // An unknown command is an error of its own, and the connection goes on.
    let refused = connection.lpush::<_, _, i32>("report", 1).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Server(ServerErrorKind::ResponseError), "{refused}");
    let several: (Value, Option<String>, i32) = redis::pipe()
        .cmd("SET")
        .arg("report")
        .arg("mine")
        .arg("NX")
        .arg("PX")
        .arg(2000)
        .get("report")
        .cmd("DELIFEQ")
        .arg("report")
        .arg("mine")
        .query(connection)?;
    assert_eq!(several, (Value::Okay, Some("mine".to_owned()), 1));
    Ok(())
}

fn many_clients(client: &Client) -> redis::RedisResult<()> {
    let (inside, entries) = (AtomicU32::new(0), AtomicU32::new(0));
    let work = |number: u32| -> redis::RedisResult<()> {
        let mut connection = client.get_connection()?;
        for turn in 0..5 {
            let value = format!("{number}-{turn}");
            while !acquire(&mut connection, "counter", &value)? {
                thread::sleep(Duration::from_millis(5));
            }
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
            thread::sleep(Duration::from_millis(2));
            inside.fetch_sub(1, Ordering::SeqCst);
            entries.fetch_add(1, Ordering::SeqCst);
            assert_eq!(release(&mut connection, "counter", &value)?, 1);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|number| scope.spawn(move || work(number))).collect();
        all.into_iter().try_for_each(|one| one.join().expect("no thread panics"))
    })?;
    assert_eq!(entries.into_inner(), 20);
    Ok(())
}
