//! Lines of the core as `tracing` events.

use steersman_core::manager::{Level, Line};

/// Fields that do not apply are left out of the event.
pub(crate) fn log(controller: Option<&str>, path: Option<&str>, line: &Line) {
    macro_rules! event {
        ($level:expr) => {
            tracing::event!(
                target: "steersman",
                $level,
                controller,
                path,
                verb = line.verb,
                object = line.key.as_ref().map(tracing::field::display),
                reconcile_id = line.reconcile_id,
                failures = line.failures,
                delay = line.delay.map(tracing::field::debug),
                objects = line.objects,
                resource_version = line.resource_version,
                error = line.error,
                "{}",
                line.message
            )
        };
    }
    match line.level {
        Level::Debug => event!(tracing::Level::DEBUG),
        Level::Info => event!(tracing::Level::INFO),
        Level::Warn => event!(tracing::Level::WARN),
        Level::Error => event!(tracing::Level::ERROR),
    }
}
