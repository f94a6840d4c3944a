//! `pathchk`: whether paths are valid and portable. The work is done by uutils.

use crate::options::{No, Spec};
use crate::program::{Args, Outcome};
use crate::uutils;

const SPEC: Spec = Spec { short: "+pP", long: &[("portability", No, 'x')], help: "" };

/// Runs `pathchk`.
pub fn main(args: Args) -> Outcome {
    uutils::run(args, "pathchk", &SPEC, uu_pathchk::uumain)
}
