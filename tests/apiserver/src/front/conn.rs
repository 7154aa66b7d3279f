//! One connection: TLS and HTTP on two threads, so that a watch can be written while the client's end is awaited.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustls::ServerConnection;
use rustls::pki_types::UnixTime;
use steersman_core::net::ConnId;
use steersman_core::wire::WireError;
use steersman_core::wire::http::{
    self, BodyFraming, HttpLimits, IncomingRequest, RequestDecoder, RequestEvent,
};

use super::{Shared, tls, wall};
use crate::machine::{ApiRequest, Identity, Input, Output};

/// Bytes that may wait for a slow client before it is cut off.
const BACKLOG: usize = 64 * 1024 * 1024;
/// Most bytes that are encrypted at once.
const BATCH: usize = 256 * 1024;
/// A client that takes nothing for so long is gone.
const WRITE_LIMIT: Duration = Duration::from_secs(60);
/// How often a request that came too early is looked at again.
const RECHECK: Duration = Duration::from_millis(20);
/// Most bytes of requests that came before the answer to the one in front of them.
const EARLY: usize = 1024 * 1024;

enum Message {
    /// A request was given to the machine; how its answer must be framed.
    Asked {
        keep_alive: bool,
        http10: bool,
        head: bool,
    },
    Out(Output),
    /// Plain bytes that are already HTTP.
    Bytes(Vec<u8>),
    /// TLS has something to say.
    Flush,
    /// Say goodbye and close.
    Finish,
}

/// The server's hold on a connection.
pub(super) struct Link {
    queue: Sender<Message>,
    waiting: Arc<AtomicUsize>,
    socket: TcpStream,
}

impl Link {
    /// Queues an output; a client that is too far behind is cut off.
    pub(super) fn give(&self, output: Output) {
        let size = match &output {
            Output::Respond { body, .. } => body.len(),
            Output::StreamChunk { bytes, .. } => bytes.len(),
            _ => 0,
        };
        if self.waiting.fetch_add(size, Ordering::Relaxed) > BACKLOG {
            self.close();
            return;
        }
        // The other end is gone only together with the connection.
        let _ = self.queue.send(Message::Out(output));
    }

    /// Closes without a word.
    pub(super) fn close(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// What the reading thread works with.
pub(super) struct Io {
    socket: TcpStream,
    tls: Arc<Mutex<ServerConnection>>,
    queue: Sender<Message>,
    /// An answer is still to come.
    busy: Arc<AtomicBool>,
}

type Body = Box<dyn FnOnce(Io) + Send>;

/// Prepares a connection; the second value starts its threads.
pub(super) fn open(
    socket: TcpStream,
    config: Arc<rustls::ServerConfig>,
) -> io::Result<(Link, impl FnOnce(Body) -> io::Result<()>)> {
    let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
    tls.set_buffer_limit(None);
    let tls = Arc::new(Mutex::new(tls));
    let (queue, messages) = mpsc::channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let busy = Arc::new(AtomicBool::new(false));
    socket.set_write_timeout(Some(WRITE_LIMIT))?;
    let link = Link { queue: queue.clone(), waiting: Arc::clone(&waiting), socket: socket.try_clone()? };
    let writer = Writer {
        socket: socket.try_clone()?,
        tls: Arc::clone(&tls),
        messages,
        waiting,
        busy: Arc::clone(&busy),
    };
    let io = Io { socket, tls, queue, busy };
    let start = move |body: Body| {
        thread::Builder::new().name("apiserver-write".into()).stack_size(256 * 1024).spawn(move || {
            let socket = writer.socket.try_clone();
            let _ = writer.run();
            if let Ok(socket) = socket {
                let _ = socket.shutdown(Shutdown::Both);
            }
        })?;
        thread::Builder::new().name("apiserver-read".into()).spawn(move || body(io))?;
        Ok(())
    };
    Ok((link, start))
}

/// Reads requests until the connection ends.
pub(super) fn serve(shared: &Shared, id: ConnId, mut io: Io) {
    let limits = HttpLimits { body_bytes: shared.max_body.saturating_mul(2), ..HttpLimits::default() };
    let mut decoder = RequestDecoder::new(limits);
    let mut buffer = vec![0; 32 * 1024];
    let mut early: Vec<u8> = Vec::new();
    let mut who: Option<Client> = None;
    let result = loop {
        if !early.is_empty() && !io.busy.load(Ordering::SeqCst) {
            let mut rest = early.as_slice();
            let step = decode(shared, id, &io, &mut decoder, &mut rest, &mut who);
            let used = early.len() - rest.len();
            early.drain(..used);
            match step {
                Ok(true) => continue,
                Ok(false) => {}
                Err(e) => break Err(e),
            }
        }
        let timeout = (!early.is_empty()).then_some(RECHECK);
        if io.socket.set_read_timeout(timeout).is_err() || early.len() > EARLY + 2 * shared.max_body {
            break Ok(());
        }
        let n = match io.socket.read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(n) => n,
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                ) =>
            {
                continue;
            }
            Err(_) => break Ok(()),
        };
        match receive(&io, &buffer[..n], &mut early) {
            Ok(true) => {}
            Ok(false) | Err(_) => break Ok(()),
        }
    };
    if let Err(error) = result {
        // Not HTTP, or not acceptable HTTP: one line of text, and the end.
        let mut out = Vec::new();
        let headers = [("Content-Type", "text/plain; charset=utf-8"), ("Connection", "close")];
        http::write_response(&mut out, error.response_code(), &headers, format!("{error}\n").as_bytes());
        let _ = io.queue.send(Message::Bytes(out));
    }
    let _ = io.queue.send(Message::Finish);
}

/// Decrypts into `plain`. False: the client said goodbye.
fn receive(io: &Io, mut bytes: &[u8], plain: &mut Vec<u8>) -> io::Result<bool> {
    let mut tls = io.tls.lock().unwrap_or_else(PoisonError::into_inner);
    let mut open = true;
    while !bytes.is_empty() {
        tls.read_tls(&mut bytes)?;
        let state = tls.process_new_packets();
        if tls.wants_write() {
            let _ = io.queue.send(Message::Flush);
        }
        let state = state.map_err(io::Error::other)?;
        let got = state.plaintext_bytes_to_read();
        if got > 0 {
            let at = plain.len();
            plain.resize(at + got, 0);
            tls.reader().read_exact(&mut plain[at..])?;
        }
        open &= !state.peer_has_closed();
    }
    Ok(open)
}

/// Whom the certificate names.
struct Client {
    user: Option<Identity>,
    untrusted: bool,
}

/// Decodes at most one request and gives it to the machine. True: there may be more.
fn decode(
    shared: &Shared,
    id: ConnId,
    io: &Io,
    decoder: &mut RequestDecoder,
    input: &mut &[u8],
    who: &mut Option<Client>,
) -> Result<bool, WireError> {
    let Some(event) = decoder.next(input)? else { return Ok(false) };
    let IncomingRequest { head, body } = match event {
        RequestEvent::Request(request) => request,
        RequestEvent::ExpectsContinue => {
            let mut out = Vec::new();
            http::write_continue(&mut out);
            let _ = io.queue.send(Message::Bytes(out));
            return Ok(true);
        }
    };
    let who = who.get_or_insert_with(|| client(shared, io));
    let request = ApiRequest {
        method: head.method.as_str().to_owned(),
        path: head.path().to_owned(),
        query: head.query().to_owned(),
        user: who.user.clone(),
        untrusted_certificate: who.untrusted,
        headers: head.headers,
        body,
    };
    io.busy.store(true, Ordering::SeqCst);
    let asked =
        Message::Asked { keep_alive: head.keep_alive, http10: head.http10, head: request.method == "HEAD" };
    let _ = io.queue.send(asked);
    shared.handle(Input::Request { conn: id, wall: wall(), request });
    Ok(true)
}

fn client(shared: &Shared, io: &Io) -> Client {
    let tls = io.tls.lock().unwrap_or_else(PoisonError::into_inner);
    let Some([end_entity, rest @ ..]) = tls.peer_certificates() else {
        return Client { user: None, untrusted: false };
    };
    let trusted = shared.verifier.verify_client_cert(end_entity, rest, UnixTime::now()).is_ok();
    let user = trusted.then(|| tls::identity(end_entity)).flatten();
    Client { untrusted: user.is_none(), user }
}

/// The writing half: the only one that touches the socket in that direction.
struct Writer {
    socket: TcpStream,
    tls: Arc<Mutex<ServerConnection>>,
    messages: Receiver<Message>,
    waiting: Arc<AtomicUsize>,
    busy: Arc<AtomicBool>,
}

impl Writer {
    fn run(mut self) -> io::Result<()> {
        let (mut plain, mut cipher) = (Vec::new(), Vec::new());
        let (mut keep_alive, mut http10, mut head_only) = (true, false, false);
        while let Ok(first) = self.messages.recv() {
            let mut next = Some(first);
            let (mut finish, mut done, mut taken) = (false, false, 0);
            while let Some(message) = next {
                match message {
                    Message::Asked { keep_alive: k, http10: h, head } => {
                        (keep_alive, http10, head_only) = (k, h, head)
                    }
                    Message::Bytes(bytes) => plain.extend_from_slice(&bytes),
                    Message::Flush => {}
                    Message::Finish => finish = true,
                    Message::Out(Output::Respond { status, mut headers, body, .. }) => {
                        taken += body.len();
                        stamp(&mut headers, keep_alive);
                        if head_only {
                            http::write_response_head(
                                &mut plain,
                                status,
                                &headers,
                                BodyFraming::Length(body.len() as u64),
                            );
                        } else {
                            http::write_response(&mut plain, status, &headers, &body);
                        }
                        (done, finish) = (true, finish | !keep_alive);
                    }
                    Message::Out(Output::StreamHead { status, mut headers, .. }) => {
                        stamp(&mut headers, keep_alive || http10);
                        let framing = if http10 { BodyFraming::UntilClose } else { BodyFraming::Chunked };
                        http::write_response_head(&mut plain, status, &headers, framing);
                    }
                    Message::Out(Output::StreamChunk { bytes, .. }) => {
                        taken += bytes.len();
                        if http10 {
                            plain.extend_from_slice(&bytes);
                        } else {
                            http::write_chunk(&mut plain, &bytes);
                        }
                    }
                    Message::Out(Output::StreamEnd { .. }) => {
                        if !http10 {
                            http::write_last_chunk(&mut plain);
                        }
                        (done, finish) = (true, finish | http10 | !keep_alive);
                    }
                    Message::Out(Output::Close { .. }) => return Ok(()),
                }
                next = if finish || plain.len() >= BATCH { None } else { self.messages.try_recv().ok() };
            }
            {
                let mut tls = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
                tls.writer().write_all(&plain)?;
                if finish {
                    tls.send_close_notify();
                }
                while tls.wants_write() {
                    tls.write_tls(&mut cipher)?;
                }
            }
            if done {
                self.busy.store(false, Ordering::SeqCst);
            }
            self.socket.write_all(&cipher)?;
            self.waiting.fetch_sub(taken, Ordering::Relaxed);
            if finish {
                return Ok(());
            }
            plain.clear();
            cipher.clear();
            plain.shrink_to(BATCH * 2);
            cipher.shrink_to(BATCH * 2);
        }
        Ok(())
    }
}

fn stamp(headers: &mut Vec<(&'static str, String)>, keep_alive: bool) {
    headers.push(("Date", crate::clock::http_date(wall())));
    if !keep_alive {
        headers.push(("Connection", "close".to_owned()));
    }
}
