//! Named limits, each with its precedent. A machine takes them as settings; these are the defaults.

use core::time::Duration;

use serde::{Deserialize, Serialize};

/// Longest response head. hyper stops near 400 KiB, Go at 1 MiB for servers; no API server sends more than a few KiB.
pub const HEAD_BYTES: usize = 64 * 1024;
/// Most header lines of a response.
pub const HEADERS: usize = 128;
/// Longest watch frame. client-go's frame reader stops at 16 MiB (`apimachinery/pkg/util/framer`).
pub const FRAME_BYTES: usize = 16 * 1024 * 1024;
/// Longest list item; the same number, since one object is one frame.
pub const ITEM_BYTES: usize = FRAME_BYTES;
/// Longest buffer that is kept from one object to the next; most objects are far below.
pub const SCRATCH_BYTES: usize = 64 * 1024;
/// Room for so many changes is kept from one read to the next; more are those of a list.
pub const CHANGES_KEPT: usize = 1024;
/// Longest body of an answer that is kept whole (get, create, ...). etcd refuses objects above 1.5 MiB; lists are streamed.
pub const BODY_BYTES: usize = 64 * 1024 * 1024;
/// Longest body of an error answer that is kept; the rest is skipped.
pub const ERROR_BODY_BYTES: usize = 64 * 1024;
/// So much of an error answer is skipped, so that the connection can live on; beyond it the connection is given up.
pub const ERROR_SKIP_BYTES: usize = 1024 * 1024;
/// Most bytes that one byte of a gzip body may become, beyond the first [`GZIP_FREE_BYTES`]. Lists of like objects reach
/// 100, the format allows 1,032, and only bombs come near that; Envoy stops at 100.
pub const GZIP_RATIO: u32 = 400;
/// Bytes that a gzip body may become whatever its ratio.
pub const GZIP_FREE_BYTES: u64 = 1024 * 1024;
/// Longest header of a gzip member, with its extra field, file name and comment. HTTP servers send ten bytes.
pub const GZIP_HEAD_BYTES: usize = 64 * 1024;

/// Longest kubeconfig, certificate or token file. etcd's limit for an object, from which most of them come, is 1.5 MiB, and
/// all public authorities together are 0.3 MiB; client-go has none and reads `/dev/zero` until it dies.
pub const FILE_BYTES: usize = 4 * 1024 * 1024;
/// What an executor reads at once: four TLS records. What has come is handled together, so that under load system calls, wake-ups
/// and views of the store are shared by many events.
pub const READ_BYTES: usize = 64 * 1024;
/// How often a task may find bytes at once before it lets others have the thread. 256 KiB are about a millisecond's work;
/// tokio gives a task 128 operations, of whatever length.
pub const READS_IN_A_ROW: u32 = 4;
/// How many inputs may wait for a controller (on threads: for those who share its thread) before those who bring them wait too; the
/// controller itself never waits for them. Go's controllers have unbounded queues of deltas here; ours fill the connection to the server instead.
pub const INBOX: usize = 1024;
/// Of how many changes a watch thread holds the objects, to free those which were replaced itself. With objects of 4 KiB that is 256 KiB.
pub const CHANGES_HELD: usize = 64;
/// How long a key that has written waits for its watches to show it. A watch that broke mostly is back within that time
/// ([`Policy::WATCH`](crate::backoff::Policy::WATCH)), and a key shall not stand still for the sake of one that is not;
/// kube-controller-manager's expectations wait five minutes.
pub const CATCH_UP: Duration = Duration::from_secs(30);
/// Most objects of which a controller remembers, for one key, that their watch has not shown what was written.
pub const UNSEEN_WRITES: usize = 256;
/// Under load a controller's status is written no more often than this; a scrape or a page every second sees no difference.
pub const STATUS_EVERY: Duration = Duration::from_millis(100);

/// What is accepted from a server: the settings of an [`Endpoint`](crate::client::Endpoint), and so of every call and
/// every watch over it. Whatever is longer is an error that names the limit; of a list or watch it costs the one object
/// alone.
///
/// ```
/// use steersman_core::client::Endpoint;
/// use steersman_core::config::{Cluster, Config};
/// use steersman_core::limits::WireLimits;
/// let mut config = Config::new(Cluster::parse("https://kube").unwrap());
/// config.limits = WireLimits { body_bytes: 1 << 20, ..WireLimits::DEFAULT };
/// assert_eq!(Endpoint::new(&config).limits.body_bytes, 1 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WireLimits {
    /// Longest head of an answer, in bytes; the trailers of a chunked body as well.
    pub head_bytes: usize,
    /// Most header lines of an answer.
    pub headers: usize,
    /// Longest frame of a watch, in bytes. A longer one is skipped and reported.
    pub frame_bytes: usize,
    /// Longest item of a list that is read item by item, in bytes. A longer one is skipped and reported.
    pub item_bytes: usize,
    /// Longest body of an answer that is kept whole, in bytes.
    pub body_bytes: usize,
    /// So many bytes are kept of an answer that is not 2xx.
    pub error_body_bytes: usize,
    /// So many more bytes are read of it before the connection is given up.
    pub error_skip_bytes: usize,
    /// Most bytes that one byte of a gzip body may become, beyond the first `gzip_free_bytes`.
    pub gzip_ratio: u32,
    /// Bytes that a gzip body may become whatever its ratio.
    pub gzip_free_bytes: u64,
    /// Longest header of a gzip member, in bytes.
    pub gzip_head_bytes: usize,
}

impl WireLimits {
    /// The numbers of this module.
    pub const DEFAULT: Self = Self {
        head_bytes: HEAD_BYTES,
        headers: HEADERS,
        frame_bytes: FRAME_BYTES,
        item_bytes: ITEM_BYTES,
        body_bytes: BODY_BYTES,
        error_body_bytes: ERROR_BODY_BYTES,
        error_skip_bytes: ERROR_SKIP_BYTES,
        gzip_ratio: GZIP_RATIO,
        gzip_free_bytes: GZIP_FREE_BYTES,
        gzip_head_bytes: GZIP_HEAD_BYTES,
    };
}

impl Default for WireLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Bytes of one segment of a recording. About an hour of a watch with ten events of 2 KiB a second is eight of them.
pub const RECORDING_SEGMENT: u64 = 8 * 1024 * 1024;
/// Segments that a recording of one machine has at most.
pub const RECORDING_SEGMENTS: u64 = 8;
/// Controllers, or watches, of one manager that is replayed: a file may say any number.
pub const RECORDED_PARTS: usize = 65_536;
/// Longest record, and most bytes that are looked at for one. The first list of a controller is one: all its objects in one delta.
/// As much as the segments of one recording hold together.
pub const RECORD_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of records that may wait to be written before no more are taken. What waits is never more than this and one record.
pub const RECORDING_QUEUE: usize = 32 * 1024 * 1024;
/// Most bytes of the words that tell why a recording ends.
pub const RECORDING_END: usize = 1024;
/// How long the end of a program waits for its recordings to be written. A pod has 30 s for its end, and most of them are for
/// its reconciles; a disk that does not answer for so long may never do.
pub const RECORDING_FLUSH: Duration = Duration::from_secs(5);

/// TCP and TLS together. client-go: 30 s to dial, 10 s for TLS.
pub const CONNECT: Duration = Duration::from_secs(30);
/// The least that each address of a host gets of [`CONNECT`], as long as there is as much; Go's dialer has the same.
pub const CONNECT_SHARE: Duration = Duration::from_secs(2);
/// From the last byte of the request to the head of the response. API servers end a request after 60 s.
pub const FIRST_BYTE: Duration = Duration::from_secs(70);
/// Longest silence inside a list or another finite body.
pub const BODY_IDLE: Duration = Duration::from_secs(30);
/// Longest silence on a watch with bookmarks: a real server sends the first after at most 120 s.
pub const WATCH_IDLE: Duration = Duration::from_secs(130);
/// The same once a bookmark has come: they come every 60 s then (apiserver `defaultBookmarkFrequency`).
pub const WATCH_IDLE_AFTER_BOOKMARK: Duration = Duration::from_secs(75);
/// Longest silence of a streaming list before its end bookmark; client-go warns at this point and waits on.
pub const INITIAL_EVENTS_STALL: Duration = Duration::from_secs(10);
/// For how long plain lists are used once a server has refused a streaming list, or not finished it. Servers are upgraded
/// and features switched on over hours; a try that fails costs one request, or the stall above.
pub const STREAMING_AGAIN: Duration = Duration::from_secs(3600);
/// How much longer than its `timeoutSeconds` a watch may live.
pub const WATCH_GUARD: Duration = Duration::from_secs(30);
/// Shortest and longest `timeoutSeconds` that a watch asks for.
pub const WATCH_TIMEOUT: (Duration, Duration) = (Duration::from_secs(290), Duration::from_secs(580));
/// Objects on a page of a list; client-go's pager.
pub const PAGE_SIZE: u32 = 500;
/// Most pages of one list: fifty million objects at the default size, far above what etcd holds.
pub const LIST_PAGES: u32 = 100_000;
/// Most unreadable objects of one resource that are remembered by key; the rest are only counted.
pub const QUARANTINE: usize = 1_000;
/// Longest dictionary of a compact store: twenty pods whole, or what a hundred kinds of them differ in. Places in it are found by a
/// table of four bytes for each of its bytes.
pub const DICTIONARY_BYTES: usize = 64 * 1024;
/// Most dictionaries that a compact store makes in a row, each of which knows more than the one before.
pub const DICTIONARIES: usize = 64;
/// So many objects must have come since a dictionary is full, and most of them be strange to it, before a compact store begins a
/// new one; twice as many the next time.
pub const RENEWED_AFTER: usize = 4096;
/// How often a compact store begins a new dictionary. Objects that packed badly all along would pack as badly with the next.
pub const DICTIONARIES_RENEWED: u32 = 8;
/// Most panics of index functions that are told one by one until somebody asks for them; the rest are only counted.
pub const INDEX_PANICS: usize = 100;
/// A longer `Retry-After` counts as this; some proxies send days.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);
