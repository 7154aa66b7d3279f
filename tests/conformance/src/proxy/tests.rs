use super::*;
use std::sync::mpsc;

const LIMIT: Duration = Duration::from_secs(10);

/// A server that says `greeting`, then echoes; and tells when a client came.
fn echo(greeting: &'static [u8]) -> (SocketAddr, mpsc::Receiver<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    let (tx, rx) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            if tx.send(()).is_err() {
                return;
            }
            thread::spawn(move || {
                let mut reader = stream.try_clone().unwrap();
                drop(stream.write_all(greeting));
                drop(io::copy(&mut reader, &mut stream));
            });
        }
    });
    (addr, rx)
}

fn client(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.addr()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

fn read_n(stream: &mut TcpStream, n: usize) -> Vec<u8> {
    let mut bytes = vec![0; n];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn bytes_pass_both_ways_and_are_counted() {
    let (addr, _rx) = echo(b"hi ");
    let proxy = Proxy::start(addr).unwrap();
    let mut c = client(&proxy);
    c.write_all(b"there").unwrap();
    assert_eq!(read_n(&mut c, 8), b"hi there");
    c.shutdown(Shutdown::Write).unwrap();
    assert_eq!(c.read(&mut [0; 8]).unwrap(), 0, "an orderly end passes through");
    assert!(proxy.wait_until(LIMIT, |s| s.open == 0));
    let stats = proxy.stats();
    assert_eq!((stats.accepted, stats.bytes_up, stats.bytes_down, stats.ended_by_fault), (1, 5, 8, 0));
}

#[test]
fn a_cut_lets_exactly_n_bytes_through_in_either_direction() {
    let (addr, _rx) = echo(b"0123456789");
    let proxy = Proxy::start(addr).unwrap();
    for n in [1, 4, 9] {
        proxy.next_connection(Faults::cut_down(n));
        let mut got = Vec::new();
        client(&proxy).read_to_end(&mut got).unwrap();
        assert_eq!(got, &b"0123456789"[..usize::try_from(n).unwrap()]);
    }
    proxy.next_connection(Faults::cut_up(3));
    let mut c = client(&proxy);
    assert_eq!(read_n(&mut c, 10), b"0123456789");
    c.write_all(b"abcdef").unwrap();
    let mut echoed = Vec::new();
    drop(c.read_to_end(&mut echoed));
    assert!(b"abc".starts_with(&echoed[..]), "no more than three bytes reached the server: {echoed:?}");
    let stats = proxy.stats();
    assert_eq!((stats.ended_by_fault, stats.bytes_up), (4, 3));
    let mut c = client(&proxy);
    assert_eq!(read_n(&mut c, 10), b"0123456789", "a fault for one connection is gone with it");
}

#[test]
fn a_reset_is_a_reset_and_a_kill_is_an_end() {
    let (addr, _rx) = echo(b"x");
    let proxy = Proxy::start(addr).unwrap();
    let (mut a, mut b) = (client(&proxy), client(&proxy));
    read_n(&mut a, 1);
    read_n(&mut b, 1);
    assert_eq!(proxy.reset_all(), 2);
    for c in [&mut a, &mut b] {
        assert_eq!(c.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    let mut c = client(&proxy);
    read_n(&mut c, 1);
    assert_eq!(proxy.kill_all(), 1);
    assert_eq!(c.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(proxy.stats().open, 0);
}

#[test]
fn a_held_connection_says_nothing_and_goes_on_when_healed() {
    let (addr, rx) = echo(b"");
    let proxy = Proxy::start(addr).unwrap();
    let mut c = client(&proxy);
    rx.recv_timeout(LIMIT).unwrap();
    c.write_all(b"1").unwrap();
    assert_eq!(read_n(&mut c, 1), b"1");
    proxy.hold();
    c.write_all(b"2").unwrap();
    c.set_read_timeout(Some(Duration::from_millis(60))).unwrap();
    let silent = c.read(&mut [0; 1]).unwrap_err();
    assert!(matches!(silent.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{silent}");
    assert_eq!(proxy.stats().bytes_up, 1);
    let mut late = client(&proxy);
    late.write_all(b"3").unwrap();
    proxy.heal();
    c.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(read_n(&mut c, 1), b"2", "nothing is lost by holding");
    assert!(proxy.wait_until(LIMIT, |s| s.bytes_up == 3));
    assert_eq!(read_n(&mut late, 1), b"3");
}

#[test]
fn a_held_connection_can_be_killed_even_when_its_receiver_is_full() {
    let (addr, rx) = echo(b"");
    let proxy = Proxy::start(addr).unwrap();
    let c = client(&proxy);
    rx.recv_timeout(LIMIT).unwrap();
    c.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    let block = vec![7; 1 << 20];
    while (&c).write_all(&block).is_ok() {} // the echo comes back unread until every buffer on the way is full
    assert_eq!(proxy.reset_all(), 1);
    c.set_write_timeout(Some(LIMIT)).unwrap();
    let end = loop {
        if let Err(e) = (&c).write_all(&block) {
            break e.kind();
        }
    };
    assert!(matches!(end, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{end:?}");
}

#[test]
fn a_delay_keeps_every_piece_that_long() {
    let (addr, _rx) = echo(b"");
    let proxy = Proxy::start(addr).unwrap();
    proxy.new_connections(Faults::delay(Duration::from_millis(40)));
    let mut c = client(&proxy);
    let start = Instant::now();
    c.write_all(b"x").unwrap();
    assert_eq!(read_n(&mut c, 1), b"x");
    assert!(start.elapsed() >= Duration::from_millis(80), "{:?}", start.elapsed());
    // A long delay does not keep the proxy from ending.
    proxy.disturb(Faults::delay(Duration::from_secs(3600)));
    c.write_all(b"y").unwrap();
    drop(proxy);
    assert_eq!(c.read(&mut [0; 1]).unwrap_or(0), 0);
}

#[test]
fn refused_means_refused_by_the_kernel_until_it_accepts_again() {
    let (addr, _rx) = echo(b"x");
    let proxy = Proxy::start(addr).unwrap();
    let mut standing = client(&proxy);
    read_n(&mut standing, 1);
    proxy.refuse();
    proxy.refuse();
    assert_eq!(TcpStream::connect(proxy.addr()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    standing.write_all(b"y").unwrap();
    assert_eq!(read_n(&mut standing, 1), b"y", "standing connections go on");
    proxy.accept().unwrap();
    proxy.accept().unwrap();
    assert_eq!(read_n(&mut client(&proxy), 1), b"x");
}

#[test]
fn a_missing_upstream_is_counted_and_a_new_one_is_used() {
    let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let proxy = Proxy::start(gone).unwrap();
    assert_eq!(client(&proxy).read(&mut [0; 1]).unwrap_or(0), 0);
    assert!(proxy.wait_until(LIMIT, |s| s.upstream_failed == 1));
    let (addr, _rx) = echo(b"x");
    proxy.set_upstream(addr);
    assert_eq!(read_n(&mut client(&proxy), 1), b"x");
}
