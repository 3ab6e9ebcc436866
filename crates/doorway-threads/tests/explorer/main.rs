//! Every schedule of the algorithms between threads, as the explorer finds them.

mod dijkstra_mutex;
mod fences;
mod found;
mod problems;
mod published;
mod ring;
mod seats;
mod spoiled;
mod table;
