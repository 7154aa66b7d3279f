//! JSON to objects.

use std::hint::black_box;

use steersman_core::source::decode;
use steersman_core::watcher::Frame;

use super::round;
use crate::Prepared;
use crate::pods;

pub(crate) fn list_item(pods: usize) -> Prepared {
    let options = pods::options();
    let items: Vec<_> = (0..pods).map(pods::item).collect();
    let mut next = round(pods);
    Prepared::new(move || black_box(decode::decode_item(black_box(items[next()].bytes()), &options)).is_ok())
}

pub(crate) fn watch_frame(pods: usize) -> Prepared {
    let options = pods::options();
    let frames: Vec<_> = (0..pods).map(|n| pods::frame("MODIFIED", n)).collect();
    let mut next = round(pods);
    Prepared::new(move || {
        let frame = decode::decode_frame(black_box(frames[next()].bytes()), &options);
        matches!(black_box(frame), Frame::Modified(_))
    })
}
