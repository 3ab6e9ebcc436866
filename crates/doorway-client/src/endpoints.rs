//! Several nodes, each of which a client may use.

use std::fmt;

use crate::endpoint::{Endpoint, EndpointError};

/// The endpoints of one or more nodes. A client uses the first one that serves it, and goes on with
/// the next if that node is gone.
///
/// It is written as endpoints with commas between them. All of them must lead to nodes of one
/// group: locks of different groups have nothing to do with each other.
///
/// ```
/// use doorway_client::{Endpoint, Endpoints};
///
/// let endpoints = Endpoints::parse("tcp://north:7000,tcp://south:7000")?;
/// assert_eq!(endpoints.first(), &Endpoint::parse("tcp://north:7000")?);
/// assert_eq!(endpoints.iter().count(), 2);
/// # Ok::<(), doorway_client::EndpointError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    first: Endpoint,
    others: Vec<Endpoint>,
}

impl Endpoints {
    /// Parse endpoints with commas between them.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let (first, others) = text.split_once(',').map_or((text, None), |it| (it.0, Some(it.1)));
        let mut endpoints = Self::from(Endpoint::parse(first)?);
        for other in others.into_iter().flat_map(|others| others.split(',')) {
            endpoints.push(Endpoint::parse(other)?);
        }
        Ok(endpoints)
    }

    /// Add an endpoint, unless it is among them.
    pub fn push(&mut self, endpoint: Endpoint) {
        if self.iter().all(|one| *one != endpoint) {
            self.others.push(endpoint);
        }
    }

    /// The endpoint that is tried first.
    pub fn first(&self) -> &Endpoint {
        &self.first
    }

    /// All endpoints, in the order in which they are tried.
    pub fn iter(&self) -> impl Iterator<Item = &Endpoint> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// How many endpoints there are.
    pub(crate) fn count(&self) -> usize {
        1 + self.others.len()
    }

    /// The endpoint with this index, counted from 0 and over again.
    pub(crate) fn get(&self, index: usize) -> &Endpoint {
        let index = index % self.count();
        index.checked_sub(1).map_or(&self.first, |index| &self.others[index])
    }
}

impl From<Endpoint> for Endpoints {
    fn from(first: Endpoint) -> Self {
        Self { first, others: Vec::new() }
    }
}

impl From<&Endpoint> for Endpoints {
    fn from(first: &Endpoint) -> Self {
        Self::from(first.clone())
    }
}

impl From<&Self> for Endpoints {
    fn from(endpoints: &Self) -> Self {
        endpoints.clone()
    }
}

impl std::str::FromStr for Endpoints {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        Self::parse(text)
    }
}

impl fmt::Display for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        self.others.iter().try_for_each(|other| write!(f, ",{other}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_written_as_they_are_parsed() {
        for text in ["@name", "tcp://north:7000,tcp://[::1]:7000,/run/doorway/socket"] {
            assert_eq!(Endpoints::parse(text).unwrap().to_string(), text);
        }
        let twice = Endpoints::parse("@a,@b,@a").unwrap();
        assert_eq!((twice.to_string().as_str(), twice.count()), ("@a,@b", 2));
        let order = [0, 1, 2, 3].map(|index| twice.get(index).to_string());
        assert_eq!(order, ["@a", "@b", "@a", "@b"]);
        for wrong in ["", ",", "@a,", ",@a", "@a,tcp://north"] {
            Endpoints::parse(wrong).unwrap_err();
        }
    }
}
