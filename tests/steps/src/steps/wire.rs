//! Bytes to heads, chunks, frames and items.

use std::hint::black_box;

use steersman_core::limits;
use steersman_core::wire::Piece;
use steersman_core::wire::framing::FrameSplitter;
use steersman_core::wire::http::{HttpEvent, HttpLimits, ResponseContext, ResponseDecoder};
use steersman_core::wire::list::ListSplitter;

use super::round;
use crate::Prepared;
use crate::pods::{self, SIZE};

/// As kube-apiserver begins to answer a watch.
pub(super) const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n\
Audit-Id: 5ad4a3b8-7a3e-4f39-9f60-2f5f6ad60b25\r\n\
Cache-Control: no-cache, private\r\n\
Content-Type: application/json\r\n\
X-Kubernetes-Pf-Flowschema-Uid: 0b9d4e0e-7ce8-4e0c-9b0e-8a29d8a3d1c4\r\n\
X-Kubernetes-Pf-Prioritylevel-Uid: 4f1b6d5a-62a8-4a53-8fd0-0f6d1c6c4a51\r\n\
Date: Sun, 01 Mar 2026 12:00:00 GMT\r\n\
Transfer-Encoding: chunked\r\n\r\n";

fn decoder() -> ResponseDecoder {
    ResponseDecoder::new(HttpLimits::default(), ResponseContext::default())
}

pub(crate) fn http_head(_: usize) -> Prepared {
    Prepared::new(|| {
        let mut input = black_box(HEAD);
        matches!(black_box(decoder().next(&mut input)), Ok(Some(HttpEvent::Head(_))))
    })
}

pub(crate) fn chunk(_: usize) -> Prepared {
    let mut http = decoder();
    assert!(matches!(http.next(&mut &*HEAD), Ok(Some(HttpEvent::Head(_)))), "the head is one");
    let chunk = pods::item(0).in_a_chunk();
    Prepared::new(move || {
        let (mut input, mut bytes) = (black_box(chunk.bytes()), 0);
        while let Ok(Some(HttpEvent::Body(body))) = http.next(&mut input) {
            bytes += black_box(body).len();
        }
        bytes == SIZE
    })
}

pub(crate) fn frame_split(frames: usize) -> Prepared {
    let body: Vec<u8> = (0..frames).flat_map(|n| pods::frame("MODIFIED", n).bytes().to_vec()).collect();
    let mut splitter = FrameSplitter::new(limits::FRAME_BYTES);
    let mut at = 0;
    Prepared::new(move || {
        loop {
            let input = read(&body, at);
            let mut rest = black_box(input);
            let piece = splitter.next(&mut rest);
            at += input.len() - rest.len();
            match black_box(piece) {
                Some(Piece::Value(frame)) => return frame.len() > SIZE,
                Some(_) => return false,
                None if at == body.len() => at = 0,
                None => {}
            }
        }
    })
}

pub(crate) fn list_split(items: usize) -> Prepared {
    let mut body =
        br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1000000000"},"items":["#
            .to_vec();
    for n in 0..items {
        body.extend(if n == 0 { "" } else { "," }.bytes());
        body.extend(pods::item(n).bytes());
    }
    body.extend(b"]}");
    let new = || ListSplitter::new(limits::ITEM_BYTES);
    let mut splitter = new();
    let (mut at, mut next) = (0, round(items));
    Prepared::new(move || {
        if next() == 0 {
            (splitter, at) = (new(), 0);
        }
        while at < body.len() {
            let input = read(&body, at);
            let mut rest = black_box(input);
            let piece = splitter.next(&mut rest);
            at += input.len() - rest.len();
            match black_box(piece) {
                Ok(Some(Piece::Value(item))) => return item.len() == SIZE,
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => return false,
            }
        }
        false
    })
}

/// What has been read of `body` from `at` on, if it comes as executors read it.
fn read(body: &[u8], at: usize) -> &[u8] {
    let end = (at / limits::READ_BYTES + 1) * limits::READ_BYTES;
    &body[at..end.min(body.len())]
}
