use super::*;
use crate::config::Cluster;

fn file() -> Authenticator {
    let mut config = Config::new(Cluster::parse("https://kube").unwrap());
    config.credentials.bearer = Bearer::File("/t".into());
    Authenticator::new(&config)
}

fn sends(auth: &Authenticator, at: u64) -> Option<String> {
    match auth.ready(Time::from_secs(at)) {
        Ready::Send(header) => Some(header.unwrap().expose().into()),
        Ready::Read(path) => {
            assert_eq!(&*path, "/t");
            None
        }
    }
}

#[test]
fn fixed_and_none() {
    let mut config = Config::new(Cluster::parse("https://kube").unwrap());
    assert_eq!(Authenticator::new(&config).ready(Time::ZERO), Ready::Send(None));
    config.credentials.bearer = Bearer::Token(Secret::new("hunter2"));
    let mut auth = Authenticator::new(&config);
    assert_eq!(sends(&auth, 0).as_deref(), Some("Bearer hunter2"));
    assert!(!auth.rejected(Time::ZERO));
    assert!(!format!("{auth:?}").contains("hunter2"));
    auth.file(Time::ZERO, Ok(b"other")).unwrap();
    assert_eq!(sends(&auth, 1_000_000).as_deref(), Some("Bearer hunter2"));
    // Never in clear.
    config.cluster = Cluster::parse("http://kube").unwrap();
    assert_eq!(Authenticator::new(&config).ready(Time::ZERO), Ready::Send(None));
}

#[test]
fn a_file_is_read_again_and_its_old_token_kept() {
    let mut auth = file();
    assert_eq!(sends(&auth, 100), None);
    auth.file(Time::from_secs(100), Ok(b" one\n")).unwrap();
    assert_eq!(sends(&auth, 149).as_deref(), Some("Bearer one"));
    assert_eq!(sends(&auth, 150), None);
    // Neither an empty file nor a missing one costs us the old token; but the next look comes sooner.
    auth.file(Time::from_secs(150), Ok(b"\n")).unwrap();
    assert_eq!(sends(&auth, 159).as_deref(), Some("Bearer one"));
    assert_eq!(sends(&auth, 160), None);
    auth.file(Time::from_secs(160), Err(&FileError::NotFound)).unwrap();
    assert_eq!(sends(&auth, 161).as_deref(), Some("Bearer one"));
    auth.file(Time::from_secs(170), Ok(b"two")).unwrap();
    assert_eq!(sends(&auth, 171).as_deref(), Some("Bearer two"));
    assert!(!format!("{auth:?}").contains("two"));
}

#[test]
fn without_any_token_a_bad_file_is_an_error() {
    for (bytes, want) in [
        (&b""[..], "token file /t: the token is empty"),
        (b"hunter2 x", "token file /t: the token holds a blank"),
        (b"hunter2\nX-Evil: 1", "token file /t: the token holds a blank"),
        (b"\xff", "token file /t: it is not text"),
        (&[b'a'; 100_000], "token file /t: longer than"),
    ] {
        let e = file().file(Time::ZERO, Ok(bytes)).unwrap_err().to_string();
        assert!(e.starts_with(want) && !e.contains("hunter2"), "{e}");
    }
    let e = file().file(Time::ZERO, Err(&FileError::NotFound)).unwrap_err();
    assert_eq!(e.to_string(), "token file /t: no such file");
}

#[test]
fn a_rejected_token_is_forgotten_unless_it_is_newer() {
    let mut auth = file();
    auth.file(Time::from_secs(10), Ok(b"one")).unwrap();
    // Another request had sent an older one.
    assert!(auth.rejected(Time::from_secs(9)));
    assert_eq!(sends(&auth, 11).as_deref(), Some("Bearer one"));
    assert!(auth.rejected(Time::from_secs(10)));
    assert_eq!(sends(&auth, 11), None);
}

#[test]
fn copies_learn_from_each_other() {
    let mut shared = file();
    let mut copy = shared.clone();
    copy.file(Time::from_secs(10), Ok(b"one")).unwrap();
    shared.learn(&copy);
    assert_eq!(sends(&shared, 11).as_deref(), Some("Bearer one"));
    let mut newer = shared.clone();
    newer.rejected(Time::from_secs(20));
    shared.learn(&newer);
    assert_eq!(sends(&shared, 21).as_deref(), Some("Bearer one"), "to have lost a token is nothing to learn");
    newer.file(Time::from_secs(21), Ok(b"two")).unwrap();
    shared.learn(&newer);
    shared.learn(&copy);
    assert_eq!(sends(&shared, 22).as_deref(), Some("Bearer two"));
    shared.learn(&Authenticator::none());
    assert_eq!(sends(&shared, 22).as_deref(), Some("Bearer two"));
}
