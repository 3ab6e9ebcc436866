//! Stories that the server remembers, by key. The one used longest ago is forgotten first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use doorway_lab::story::Story;

/// How many bytes the remembered stories may take, by their own estimate.
const BYTES: usize = 64 << 20;

/// The stories that the server remembers.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    stories: Mutex<Stories>,
}

#[derive(Debug, Default)]
struct Stories {
    by_key: BTreeMap<String, (u64, Arc<Story>)>,
    uses: u64,
    bytes: usize,
}

impl Cache {
    /// The story with this key.
    pub(crate) fn get(&self, key: &str) -> Option<Arc<Story>> {
        let mut stories = self.stories.lock().unwrap_or_else(PoisonError::into_inner);
        stories.uses += 1;
        let now = stories.uses;
        let (used, story) = stories.by_key.get_mut(key)?;
        *used = now;
        Some(Arc::clone(story))
    }

    /// Remember a story. Returns its key.
    pub(crate) fn put(&self, story: Story) -> String {
        let key = format!("{:016x}", story.key());
        let mut stories = self.stories.lock().unwrap_or_else(PoisonError::into_inner);
        stories.uses += 1;
        let now = stories.uses;
        stories.bytes += story.weight();
        if let Some((_, before)) = stories.by_key.insert(key.clone(), (now, Arc::new(story))) {
            stories.bytes -= before.weight();
        }
        while stories.bytes > BYTES && stories.by_key.len() > 1 {
            let oldest = stories.by_key.iter().min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            if let Some((_, story)) = stories.by_key.remove(&oldest) {
                stories.bytes -= story.weight();
            }
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use doorway_lab::story::{Pick, StopCondition};

    use super::*;

    #[test]
    fn the_story_used_longest_ago_is_forgotten() {
        let cache = Cache::default();
        let mut story = Story::begin("lamport n=100").unwrap();
        let first = cache.put(story.clone());
        assert!(cache.get(&first).is_some());
        let mut kept = 0;
        for _ in 0..200 {
            story.go(Pick::Fair, StopCondition::Steps(200));
            let key = cache.put(story.clone());
            assert!(cache.get(&key).is_some(), "the newest is there");
            kept += 1;
            if cache.get("").is_none() && cache.stories.lock().unwrap().by_key.len() < kept {
                break;
            }
        }
        assert!(cache.get(&first).is_none(), "the oldest is gone");
        assert!(cache.stories.lock().unwrap().bytes <= BYTES);
    }
}
