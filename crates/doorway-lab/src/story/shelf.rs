//! The shelf: the scripts of the papers and the flaws of texts, as stories to open.

use doorway_core::algorithms::ALL;
use doorway_protocol::text::capitalized;
use serde::Serialize;

use crate::check::Property;
use crate::flaws::{self, Flaw};
use crate::stories::{SCRIPTS, Script};

/// A story on the shelf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Card {
    /// The place of the script, or the name of the flaw.
    pub id: &'static str,
    /// The algorithm, whose paper and year are in the list of algorithms.
    pub algorithm: &'static str,
    /// Where the story is from, or its name.
    pub title: String,
    /// What happens in it.
    pub about: String,
    /// How it ends, if that is bad: "violation", "stuck" or "starved".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<&'static str>,
}

/// The script at this place.
pub fn script_of(id: &str) -> Option<&'static str> {
    SCRIPTS.iter().find(|script| script.name == id).map(|script| script.text)
}

/// All stories, ordered by the year of the paper and by algorithm.
pub fn cards() -> Vec<Card> {
    let mut cards: Vec<Card> = SCRIPTS.iter().filter_map(card).collect();
    cards.extend(flaws::all().iter().filter_map(flawed));
    cards.sort_by_key(|card| {
        let place = ALL.iter().position(|entry| entry.info.name == card.algorithm);
        (place.map(|place| ALL[place].info.year), place)
    });
    cards
}

fn card(script: &Script) -> Option<Card> {
    let entry = ALL.iter().find(|entry| entry.info.name == script.algorithm)?;
    let (title, about) = heading(script.name, &script.about());
    let begins = |head: &str| script.text.lines().any(|line| line.starts_with(head));
    let ends = ["violation", "starved", "stuck"];
    Some(Card {
        id: script.name,
        algorithm: entry.info.name,
        title,
        about,
        ends: ends.into_iter().find(|end| begins(&format!("{end}: "))),
    })
}

/// The card of a flaw, whose story is the shortest counterexample.
fn flawed(flaw: &Flaw) -> Option<Card> {
    let entry = ALL.iter().find(|entry| entry.info.name == flaw.algorithm)?;
    let Flaw { name, what, steps, .. } = flaw;
    let ends = match flaw.breaks {
        Property::Stuck => "stuck",
        Property::Starvation => "starved",
        _ => "violation",
    };
    Some(Card {
        id: name,
        algorithm: entry.info.name,
        title: format!("Flaw {name}, {steps} steps"),
        about: format!("{}.", capitalized(what)),
        ends: Some(ends),
    })
}

/// The heading of a story and the rest of its opening comment: "Maekawa 1985, section 5: nodes 7, 8
/// and 11 ...". If a comment begins otherwise, the name of the story is its heading.
fn heading(name: &str, opening: &str) -> (String, String) {
    let split = opening.split_once(": ");
    let split = split.filter(|(title, _)| title.len() <= 120 && !title.contains(". "));
    if let Some((title, about)) = split {
        return (title.to_owned(), capitalized(about));
    }
    let name = name.rsplit('/').next().unwrap_or(name);
    (capitalized(&name.replace('-', " ")), opening.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_has_a_heading_that_begins_with_a_capital_letter() {
        for card in cards() {
            let first = card.title.chars().next();
            assert!(first.is_some_and(char::is_uppercase), "{}: {:?}", card.id, card.title);
            assert!(!card.about.is_empty(), "{}", card.id);
        }
    }
}
