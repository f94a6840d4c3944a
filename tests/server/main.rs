//! `sandlite serve` as its clients see it: the real program, real sockets, several tenants.

mod http;
mod skillbox;
