//! How reports describe the client of a session.

use std::sync::Arc;

use doorway_sessions::ProcessId;

use super::process;

/// How reports name the client of a session, and whether its process has ended since.
#[derive(Clone, Debug)]
pub(super) struct Description {
    /// What the client said of itself when it opened its session, with the number of its process.
    pub(super) client: Arc<str>,
    /// The process that opened the session, if the node can see it.
    pub(super) process: Option<ProcessId>,
}

impl Description {
    /// The description as it is true now. A session may outlive the process that opened it, because
    /// the processes that it started hold the lock; then the text says that the process has ended.
    pub(super) fn now(&self) -> String {
        let Some(process) = self.process else { return self.client.to_string() };
        let named = format!("pid {}", process.pid);
        // The label of the client comes first and may contain anything, so the last place counts.
        let place = self.client.rfind(&named).map(|at| at + named.len()).filter(|end| {
            // A longer number begins with this one, or the client knows itself by another one.
            !self.client[*end..].starts_with(|next: char| next.is_ascii_digit())
        });
        match place.filter(|_| process::has_ended(process)) {
            Some(end) => format!("{} has ended{}", &self.client[..end], &self.client[end..]),
            None => self.client.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn description(client: &str, pid: u32) -> String {
        let process = Some(ProcessId { pid, started: None });
        Description { client: client.into(), process }.now()
    }

    #[test]
    fn a_process_that_has_ended_is_marked() {
        let mut child = Command::new("sleep").arg("100").spawn().expect("a process");
        let pid = child.id();
        let texts = [
            format!("x (pid {pid}) on host"),
            format!("x (pid {pid}, uid 7) on host"),
            format!("pid {pid}"),
        ];
        for text in &texts {
            assert_eq!(description(text, pid), *text);
        }
        child.kill().expect("it runs");
        // Even before its parent has waited for it.
        while !process::has_ended(ProcessId { pid, started: None }) {
            std::thread::yield_now();
        }
        let marked = texts.clone().map(|text| description(&text, pid));
        child.wait().expect("a child of ours");
        assert_eq!(marked, texts.clone().map(|text| description(&text, pid)));
        assert_eq!(
            marked,
            [
                format!("x (pid {pid} has ended) on host"),
                format!("x (pid {pid} has ended, uid 7) on host"),
                format!("pid {pid} has ended"),
            ]
        );
        // The client is another process than the one that connected: nothing is known of it.
        for other in [format!("x (pid {pid}1)"), "x (pid 7)".to_owned(), "x".to_owned()] {
            assert_eq!(description(&other, pid), other);
        }
    }
}
