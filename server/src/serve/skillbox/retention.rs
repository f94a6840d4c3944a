//! How long results are kept: executions and their artifacts by age, number and bytes of each tenant, and the sandboxes of sessions that no one
//! has used since the server started, and the rows of the audit log. Bytes that no row names, which a crash can leave, are removed.

use std::time::Duration;

use super::{shells, store};
use crate::serve::app::App;
use crate::serve::catalog::Kept;
use crate::serve::clock::now;
use crate::serve::problem::Problem;

/// Bytes of a file are stored before its row: those younger than this may get one.
const SETTLED: Duration = Duration::from_secs(3600);
/// Sweeps after which the bytes are compared with the rows again.
const RARELY: u64 = 120;

/// Removes results that exceed the age or number in the settings. The first round is before any request.
pub(super) fn sweep(app: &App, round: u64) -> Result<(), Problem> {
    let config = app.config();
    let ago = |age: Duration| now().saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    let kept = Kept {
        since: ago(config.execution_age),
        executions: i64::try_from(config.executions_of_tenant).unwrap_or(i64::MAX),
        bytes: i64::try_from(config.artifact_bytes_of_tenant).unwrap_or(i64::MAX),
    };
    for name in app.catalog().tenant_names()? {
        app.catalog().prune_audit(&name, ago(config.audit_age), config.audit_rows_of_tenant)?;
        let tenant = app.tenant(&name)?;
        store::remove(&tenant, &app.catalog().prune_executions(&name, &kept)?);
        if round.is_multiple_of(RARELY) {
            store::remove_orphans(app, &tenant, if round == 0 { Duration::ZERO } else { SETTLED })?;
        }
    }
    shells::expire_unopened(app)
}
