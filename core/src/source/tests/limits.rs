//! What is too long costs itself alone, and the limits are those that were set.

use super::*;

const LIMITS: WireLimits =
    WireLimits { item_bytes: 90, frame_bytes: 130, error_body_bytes: 20, ..WireLimits::DEFAULT };

fn long(name: &str, version: u32) -> String {
    let object = object(name, "u", version);
    format!("{},\"pad\":\"{}\"}}", &object[..object.len() - 1], "x".repeat(80))
}

#[test]
fn items_and_frames_beyond_their_limits_are_skipped() {
    for style in STYLES {
        let (a, b) = (object("a", "u1", 5), object("c", "u3", 12));
        assert!(a.len() <= LIMITS.item_bytes && long("b", 6).len() > LIMITS.item_bytes);
        let frames = frame("ADDED", &long("b", 11)) + &frame("ADDED", &b);
        assert!(frame("ADDED", &b).len() <= LIMITS.frame_bytes);
        let script = vec![
            Answer::Bytes(json(&list(10, "", &[a, long("b", 6)]))),
            Answer::Bytes(watch(&frames, false)),
        ];
        let spec = WatchSpec::all(CONFIGMAPS);
        let play = Play::limited(LIMITS, &spec, style, lists(), script);
        assert_eq!(play.names(), ["a@5", "c@12"], "{style:?}");
        let skipped: Vec<_> = play.notices.iter().map(|n| format!("{n:?}")).collect();
        let skipped = skipped.iter().filter(|n| n.contains("more than an object may have")).count();
        assert_eq!(skipped, 2, "{:?}", play.notices);
    }
}

#[test]
fn of_a_refusal_so_much_is_kept() {
    let text = "0123456789 abcdefghijklmnop";
    let refusal =
        format!("HTTP/1.1 403 X\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}", text.len());
    let spec = WatchSpec::all(CONFIGMAPS);
    let play = Play::limited(LIMITS, &spec, STYLES[0], lists(), vec![Answer::Bytes(refusal)]);
    let error = play.errors()[0];
    assert!(error.contains("0123456789 abcdefghi") && !error.contains("abcdefghij"), "{error}");
}

/// A server that sends back what it was sent does not get our credentials into a message.
#[test]
fn what_was_sent_is_not_told() {
    for body in
        ["denied: hunter-two", "{\"x\":1} hunter-two", "<html>hunter-tw", "Authorization: Bearer hunter-two"]
    {
        for status in [200, 403] {
            let answer = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: text/json hunter-two\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let mut config = Config::new(Cluster::parse("https://kube:6443").unwrap());
            config.credentials.bearer = Bearer::Token(Secret::new("hunter-two"));
            let script = vec![Answer::Bytes(answer)];
            let spec = WatchSpec::all(CONFIGMAPS);
            let play = Play::configured(&config, &spec, STYLES[0], lists(), script);
            assert!(play.requests[0].contains("hunter-two"));
            assert!(!play.errors().is_empty());
            assert!(
                !format!("{:?} {:?}", play.notices, play.source.status()).contains("hunter-t"),
                "{:?}",
                play.notices
            );
        }
    }
}
