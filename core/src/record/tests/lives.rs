//! Any life of a source.

use super::*;

/// Anything that can happen to a source, in any order.
#[derive(Clone, Debug)]
struct Life {
    config: (bool, Option<usize>, bool),
    events: Vec<(u8, u16)>,
}

impl Arbitrary for Life {
    fn arbitrary(g: &mut Gen) -> Self {
        Self {
            config: (bool::arbitrary(g), *g.choose(&[None, Some(0), Some(400)]).unwrap(), bool::arbitrary(g)),
            events: Vec::arbitrary(g),
        }
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        let config = self.config;
        Box::new(self.events.shrink().map(move |events| Self { config, events }))
    }
}

impl Life {
    fn live(self) -> bool {
        let (secrets, decode_job, streaming) = self.config;
        let memory = Memory::default();
        let mut options = Options { decode_job, ..Options::default() };
        options.watcher.streaming = streaming;
        let mut source =
            source(if secrets { SECRETS } else { CONFIGMAPS }, options, &with_token_file(), &memory);
        let (mut out, mut jobs): (_, Vec<DecodeJob>) = (Outputs::new(), Vec::new());
        let mut now = Time::ZERO;
        let mut conn = ConnId(1);
        let mut version = 5;
        let error = NetError { kind: NetErrorKind::Reset, message: "reset".into() };
        source.handle(now, source::Input::Start, &mut out);
        let mut pending: Vec<u8> = Vec::new();
        for (what, n) in self.events {
            for output in out.drain() {
                match output {
                    Output::Effect(Effect::Connect { conn: c, .. }) => conn = c,
                    Output::Decode(job) => jobs.push(*job),
                    _ => {}
                }
            }
            now = now + Duration::from_millis(u64::from(n));
            version += 1;
            let name = ["a", "b", "c"][usize::from(n) % 3];
            let (mut bytes, file);
            let event = match what % 16 {
                0 | 1 => NetEvent::Connected { reused: n % 2 == 0 },
                2 => NetEvent::ConnectFailed(&error),
                3 => NetEvent::Eof,
                4 => NetEvent::Broken(&error),
                5 | 6 => {
                    if let Some(next) = source.next_deadline() {
                        now = now.max(next.at);
                    }
                    source.handle(now, source::Input::Deadline, &mut out);
                    continue;
                }
                7 | 8 => {
                    file = [Ok(&b"hunter2"[..]), Ok(b""), Err(&FileError::NotFound), Ok(b"\xff"), Ok(b"a b")]
                        [usize::from(n % 6).saturating_sub(1)];
                    source.handle(now, source::Input::File { path: "/token", result: file }, &mut out);
                    continue;
                }
                9 if !jobs.is_empty() => {
                    let job = jobs.remove(usize::from(n) % jobs.len());
                    source.handle(now, source::Input::Decoded(job.decode_all()), &mut out);
                    continue;
                }
                10 => {
                    bytes = b"HTTP/1.1 410 Gone\r\nSet-Cookie: q\r\nContent-Length: 0\r\n\r\n".to_vec();
                    NetEvent::Received(&bytes)
                }
                11 => {
                    bytes = (0..n % 200).map(|i| (i * 7) as u8).collect();
                    NetEvent::Received(&bytes)
                }
                12 => {
                    pending = answer(&list(version, &[secret(name, version, DATA), secret("z", 4, DATA)]));
                    bytes = pending.split_off(pending.len().min(usize::from(n)));
                    core::mem::swap(&mut bytes, &mut pending);
                    NetEvent::Received(&bytes)
                }
                13 => {
                    let kind = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"][usize::from(n) % 5];
                    let frame =
                        format!("{{\"type\":\"{kind}\",\"object\":{}}}\n", secret(name, version, DATA));
                    bytes = watch(&frame, 1 + usize::from(n) % 300);
                    NetEvent::Received(&bytes)
                }
                _ => {
                    bytes = pending.split_off(pending.len().min(usize::from(n)));
                    core::mem::swap(&mut bytes, &mut pending);
                    NetEvent::Received(&bytes)
                }
            };
            source.handle(now, source::Input::Net { conn, event }, &mut out);
        }
        source.handle(now, source::Input::Stop, &mut out);
        let text = memory.text();
        assert!(!text.contains(TOKEN), "{text}");
        assert!(!secrets || !text.contains(DATA), "{text}");
        let compared = memory.compare();
        assert_eq!(compared.first, None);
        true
    }
}

#[test]
fn any_life_of_a_source_is_replayed() {
    cases(300).quickcheck((|life: Life| life.live()) as fn(Life) -> bool);
}
