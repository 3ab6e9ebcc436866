//! The shelf: the scripts of the papers and the flaws of texts, as stories to open.

use doorway_core::Info;
use doorway_core::algorithms::ALL;
use serde::Serialize;

use crate::check::Property;
use crate::flaws::{self, Flaw};
use crate::stories::{SCRIPTS, Script};

/// A story on the shelf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Card {
    /// The place of the script, or the name of the flaw.
    pub id: &'static str,
    /// The algorithm.
    pub algorithm: &'static str,
    /// The paper of the algorithm, and its year.
    pub paper: &'static str,
    /// The year of the paper.
    pub year: u16,
    /// Where the story is from.
    pub title: String,
    /// What happens in it.
    pub about: String,
    /// How it ends, if that is bad: "violation", "stuck" or "starved".
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
    let place = |card: &Card| ALL.iter().position(|entry| entry.info.name == card.algorithm);
    cards.sort_by_key(|card| (card.year, place(card)));
    cards
}

fn card(script: &Script) -> Option<Card> {
    let entry = ALL.iter().find(|entry| entry.info.name == script.algorithm)?;
    let Info { name, paper, year, .. } = entry.info;
    let (title, about) = heading(&script.about());
    let begins = |head: &str| script.text.lines().any(|line| line.starts_with(head));
    let ends = ["violation", "starved", "stuck"];
    Some(Card {
        id: script.name,
        algorithm: name,
        paper,
        year,
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
    let mut letters = what.chars();
    let first = letters.next().map(char::to_uppercase).into_iter().flatten();
    Some(Card {
        id: name,
        algorithm: entry.info.name,
        paper: entry.info.paper,
        year: entry.info.year,
        title: format!("Flaw {name}, {steps} steps"),
        about: first.chain(letters).chain(['.']).collect(),
        ends: Some(ends),
    })
}

/// The heading of a story and the rest of its opening comment: "Maekawa 1985, section 5: nodes 7, 8
/// and 11 ...". A comment that begins otherwise has no heading.
fn heading(opening: &str) -> (String, String) {
    let split = opening.split_once(": ");
    let Some((title, about)) =
        split.filter(|(title, _)| title.len() <= 70 && !title.contains(". "))
    else {
        return (String::new(), opening.to_owned());
    };
    let mut letters = about.chars();
    let first = letters.next().map(char::to_uppercase);
    (title.to_owned(), first.into_iter().flatten().chain(letters).collect())
}
