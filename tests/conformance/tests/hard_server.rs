//! A real API server under hard conditions. Each scene starts one of its own with the flags it needs, so they run only when
//! asked for:
//!
//! ```text
//! cargo test -p steersman-tests --test hard_server -- --ignored
//! ```

macro_rules! scenes {
    ($($module:ident: $($scene:ident),+;)+) => {
        $(mod $module {
            $(
                #[test]
                #[ignore = "starts a real API server of its own"]
                fn $scene() {
                    steersman_tests::hard::$module::$scene();
                }
            )+
        })+
    };
}

scenes! {
    first: streaming_lists, streaming_lists_refused, gzip;
    forgotten: a_watch, a_watch_without_a_cache, a_page;
    ends: by_the_server, by_their_own_time, goaway;
    overload: too_many_requests;
    outages: the_api_server, etcd, etcd_without_a_cache, older_data, older_data_that_catch_up;
    recorded: on_threads, on_smol;
}
