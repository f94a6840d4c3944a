//! Utilities over lines and bytes of text.

pub mod cat;
pub mod checksum;
pub mod comm;
pub mod cut;
pub mod encode;
pub mod expr;
pub mod fmt;
pub mod fold;
pub mod head;
pub mod look;
pub mod nl;
pub mod numfmt;
pub mod paste;
pub mod pr;
pub mod seq;
pub mod shuf;
pub mod sort;
pub mod split;
pub mod tabs;
pub mod tac;
pub mod tail;
pub mod tee;
pub mod tr;
pub mod tsort;
pub mod uniq;
pub mod wc;
