//! Bytes keep their order, and are whole up to where they are cut.

use super::*;

const WHO: Who = Who { process: 0, life: 1 };

fn net(weather: Weather, seed: u64) -> (Net, LinkId) {
    let mut net = Net::new(1, 1, weather, Rng::new(seed));
    let (link, _) = net.connect(Time::ZERO, WHO, 0, (PartId::Manager, ConnId(1)));
    (net, link)
}

/// Everything that arrives, as the arrivals come due.
fn receive(net: &mut Net, link: LinkId, arrivals: &[Time]) -> (Vec<u8>, Vec<Segment>) {
    assert!(arrivals.is_sorted(), "{arrivals:?}");
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for _ in arrivals {
        match net.arrive(link, Dir::Down) {
            Some(Segment::Bytes(piece)) => bytes.extend(piece),
            Some(end) => ends.push(end),
            None => {}
        }
    }
    (bytes, ends)
}

#[test]
fn in_order_whatever_the_weather() {
    for seed in 0..200 {
        let pieces = (seed % 3 == 0).then_some(7);
        let weather = Weather { chopped: 500, lost: 300, pieces, ..Weather::FAIR };
        let (mut net, link) = net(weather, seed);
        let (mut sent, mut arrivals) = (Vec::new(), Vec::new());
        for n in 0..20u8 {
            let bytes = vec![n; usize::from(n) + 1];
            sent.extend_from_slice(&bytes);
            net.send(Time::from_millis(u64::from(n)), link, Dir::Down, bytes, &mut arrivals);
        }
        arrivals.extend(net.put(Time::from_millis(20), link, Dir::Down, Segment::Fin));
        assert_eq!(receive(&mut net, link, &arrivals), (sent, vec![Segment::Fin]));
    }
}

#[test]
fn a_cut_lets_so_many_bytes_through() {
    for after in 1..=12 {
        let (mut net, link) = net(Weather::FAIR, 1);
        net.cut_after(link, after);
        let mut arrivals = Vec::new();
        for _ in 0..3 {
            net.send(Time::ZERO, link, Dir::Down, b"abcd".to_vec(), &mut arrivals);
        }
        let (bytes, _) = receive(&mut net, link, &arrivals);
        assert_eq!(bytes, b"abcdabcdabcd"[..after]);
        assert!(net.is_cut(link, Dir::Down));
    }
}

#[test]
fn a_reset_overtakes_what_was_not_read() {
    let (mut net, link) = net(Weather::FAIR, 1);
    let mut arrivals = Vec::new();
    net.send(Time::ZERO, link, Dir::Down, b"abcd".to_vec(), &mut arrivals);
    arrivals.extend(net.put(Time::ZERO, link, Dir::Down, Segment::Reset));
    assert_eq!(receive(&mut net, link, &arrivals), (Vec::new(), vec![Segment::Reset]));
}
