//! The parts of a node, each on its own and without a network: locks, links, views, frames and the
//! files of a node.

mod crowd;
mod epochs;
mod every_way;
mod frames;
mod keeper_check;
mod kept;
mod kept_word;
mod link_check;
mod locks_check;
mod locks_random;
mod locks_shard;
mod locks_shares;
mod members;
mod members_check;
mod nodes;
mod payloads;
mod views_check;
mod views_refuse;
