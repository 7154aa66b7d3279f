//! Every scene, for every executor, on the server that `STEERSMAN_SERVER` asks for.

macro_rules! scenes {
    ($($module:ident: $($scene:ident),+;)+) => {
        scenes!(@ threads, Threads, $($($module $scene),+),+);
        scenes!(@ smol, Smol, $($($module $scene),+),+);
    };
    (@ $name:ident, $executor:ident, $($module:ident $scene:ident),+) => {
        mod $name {
            $(
                #[test]
                fn $scene() {
                    steersman_tests::suite::$module::$scene::<steersman_tests::suite::$executor>();
                }
            )+
        }
    };
}

scenes! {
    sync: first_sync, many_controllers, add_change_delete, trigger, trigger_at_once, child_drift, nothing_runs_before_all_have_synced;
    runs: a_change_during_a_run_is_one_more_run, never_one_key_twice_at_once, own_writes_are_seen, reads_are_counted, children_in_several_namespaces,
        the_concurrency_limit, requeue, error_backoff, a_panic_costs_one_key;
    ending: stop_waits_for_what_runs, grace_is_limited, kill_ends_at_once, a_kill_after_a_stop_ends_at_once,
        stop_while_the_network_is_silent, status_answers_while_reconciles_block;
    faults: a_delete_hidden_in_a_gap, cut_in_mid_line, server_restart, connections_die_at_random;
    partial: metadata_is_enough_to_run, metadata_by_the_client, what_one_drops_another_sees;
    recorded: a_recorded_run_is_replayed_exactly, no_credential_is_recorded, a_recording_of_the_latest_is_read;
    unreadable: a_type_that_does_not_fit_one_object, bytes_that_are_no_object, a_line_that_is_no_event;
}

/// Only where a controller has a thread of its own.
#[test]
fn threads_a_mapping_that_hangs() {
    steersman_tests::suite::ending::a_mapping_that_hangs::<steersman_tests::suite::Threads>();
}

/// Only where controllers share threads.
#[test]
fn threads_after_the_end_of_those_beside_one_that_hangs() {
    steersman_tests::suite::ending::beside_a_mapping_that_hangs::<steersman_tests::suite::Threads>();
}
