//! The names in use at a node without peers, and its locks with permits, which nobody has to
//! configure.
//!
//! A client that asks for one of 3 permits of `NAME` gets a permit of the lock `%k/3/NAME`, which
//! the node serves with 3 permits. All clients that use a name at the same time must agree on the
//! number of permits, so the uses of every name are counted here.

use std::collections::BTreeMap;

use doorway_protocol::{Code, Name, Refusal};

use super::refusals::refusal;

/// The first character of names that no client can use.
pub const RESERVED: char = '%';

/// The beginning of the names of locks with permits.
const BEGINNING: &str = "%k/";

/// How many permits can be asked for without any configuration.
const MAX: u32 = 64;

/// The locks with permits that a node without peers serves, whatever its settings say: patterns of
/// their names, and the number of permits of each.
pub fn unconfigured_permits() -> impl Iterator<Item = (String, u32)> {
    (2..=MAX).map(|permits| (format!("{BEGINNING}{permits}/*"), permits))
}

/// The name by which clients know a lock.
pub fn visible(name: &Name) -> &str {
    let text = name.as_str();
    let rest = text.strip_prefix(BEGINNING).and_then(|rest| rest.split_once('/'));
    rest.map_or(text, |(_, name)| name)
}

/// The name by which clients know a lock, as a [`Name`].
pub fn visible_name(name: &Name) -> Name {
    let text = visible(name);
    if text.len() == name.as_str().len() {
        return name.clone();
    }
    Name::new(text).expect("the end of a name is a name if it is not empty")
}

/// The names in use. Clients choose them, so a table with hashes could be made slow by names that
/// are chosen for that, unless it were random.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Names {
    /// The uses of each name without permits.
    plain: BTreeMap<Name, u32>,
    /// The number of permits and the uses of each name that is used with permits.
    permits: BTreeMap<Name, (u32, u32)>,
}

impl Names {
    /// Count a use of a name, with this number of permits, and return the name of the lock at the
    /// node. Refused if other clients use the name with another number.
    pub(super) fn enter(&mut self, lock: &Name, permits: Option<u32>) -> Result<Name, Refusal> {
        let Some(number) = permits else {
            if let Some((number, _)) = self.permits.get(lock) {
                return Err(differ(lock, *number));
            }
            match self.plain.get_mut(lock) {
                Some(count) => *count += 1,
                None => drop(self.plain.insert(lock.clone(), 1)),
            }
            return Ok(lock.clone());
        };
        let name = behind(lock, number)?;
        if self.plain.contains_key(lock) {
            return Err(differ(lock, 1));
        }
        let (used, count) = self.permits.entry(lock.clone()).or_insert((number, 0));
        if *used != number {
            return Err(differ(lock, *used));
        }
        *count += 1;
        Ok(name)
    }

    /// A use of a name has ended.
    pub(super) fn leave(&mut self, lock: &Name, permits: Option<u32>) {
        let count = match permits {
            None => self.plain.get_mut(lock),
            Some(_) => self.permits.get_mut(lock).map(|(_, count)| count),
        };
        let Some(count) = count else { return debug_assert!(false, "`{lock}` is not in use") };
        *count -= 1;
        if *count == 0 && permits.is_none() {
            self.plain.remove(lock);
        } else if *count == 0 {
            self.permits.remove(lock);
        }
    }

    /// The number of permits with which a name is used now.
    pub(super) fn permits(&self, lock: &Name) -> Option<u32> {
        self.permits.get(lock).map(|(number, _)| *number)
    }

    /// The lock at the node behind a name, as it is used now.
    pub(super) fn behind(&self, lock: &Name) -> Name {
        let name = self.permits(lock).and_then(|number| behind(lock, number).ok());
        name.unwrap_or_else(|| lock.clone())
    }

    /// The names that are used with permits, in order.
    pub(super) fn with_permits(&self) -> impl Iterator<Item = &Name> {
        self.permits.keys()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.permits.is_empty()
    }
}

/// The name of the lock that serves this number of permits of a name.
fn behind(lock: &Name, permits: u32) -> Result<Name, Refusal> {
    if !(2..=MAX).contains(&permits) {
        let text = format!("{permits} permits of `{lock}`: 1 to {MAX} can be asked for");
        return Err(refusal(Code::Invalid, text));
    }
    let text = format!("{BEGINNING}{permits}/{lock}");
    Name::new(&text).map_err(|_| {
        let most = Name::MAX - (text.len() - lock.as_str().len());
        let text = format!("the name of a lock with {permits} permits has at most {most} bytes");
        refusal(Code::NotServed, text)
    })
}

/// The reason why a name cannot be used with another number of permits.
fn differ(lock: &Name, permits: u32) -> Refusal {
    let text = match permits {
        1 => format!("`{lock}` is in use without permits: ask for it without, or wait"),
        _ => format!("`{lock}` is in use with {permits} permits: ask for as many, or wait"),
    };
    refusal(Code::NotServed, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_used_with_one_number_of_permits_at_a_time() {
        let (mut names, lock) = (Names::default(), Name::new("a/b").unwrap());
        let name = names.enter(&lock, Some(4)).unwrap();
        assert_eq!((name.as_str(), visible(&name)), ("%k/4/a/b", "a/b"));
        assert_eq!(names.behind(&lock), name);
        names.enter(&lock, Some(4)).unwrap();
        assert_eq!(names.enter(&lock, Some(3)).unwrap_err().code, Code::NotServed);
        assert_eq!(names.enter(&lock, None).unwrap_err().code, Code::NotServed);
        names.leave(&lock, Some(4));
        assert_eq!(names.permits(&lock), Some(4));
        names.leave(&lock, Some(4));
        assert!(names.is_empty());
        names.enter(&lock, None).unwrap();
        assert_eq!(names.enter(&lock, Some(3)).unwrap_err().code, Code::NotServed);
        names.leave(&lock, None);
        assert!(names.enter(&lock, Some(3)).is_ok());
    }

    #[test]
    fn numbers_and_names_that_no_lock_can_have_are_refused() {
        let (mut names, lock) = (Names::default(), Name::new(&"x".repeat(195)).unwrap());
        for number in [0, 1, 65, u32::MAX] {
            assert_eq!(names.enter(&lock, Some(number)).unwrap_err().code, Code::Invalid);
        }
        let refused = names.enter(&lock, Some(10)).unwrap_err();
        assert!(refused.text.ends_with("at most 194 bytes"), "{refused}");
        assert!(names.is_empty(), "a refused use is not counted");
    }
}
