//! `sandlite serve` as its clients see it: the real program, real sockets, several tenants.

mod clients;
mod console;
mod crash;
mod door;
mod http;
mod routes;
mod sandboxes;
mod shares;
mod skillbox;
#[path = "../support/skipped.rs"]
mod skipped;
mod tls;
mod traces;
