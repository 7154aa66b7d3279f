//! Systematic adversaries: not what chance brings, but every place at which one thing can go wrong, one after the other
//! (after Sieve, OSDI 2022, and Acto, SOSP 2023). Each is one call on a [`Sim`]; each run must pass all oracles of the
//! simulator and end as the undisturbed run did.

use std::time::Duration;

use steersman_core::time::Time;
use steersman_core::watcher::FirstState;

use crate::cluster::Cluster;
use crate::end::EndState;
use crate::faults::{Fault, Ill, Moment, What, When};
use crate::sim::{Failure, Report, Sim, faults_of_environment};

/// How long a process is down that an adversary kills.
const DOWN: Duration = Duration::from_millis(500);
/// How long a stale cache stays stale: longer than a start and a few reconciles.
const STALE: Duration = Duration::from_secs(20);
/// How far back a stale cache is at most, in commits before a write of the process.
const BACK: u64 = 4;
/// When the second state is asked for, in [`Sim::a_to_b`].
const THEN: Duration = Duration::from_secs(60);

type Verdict<T> = Result<T, Box<Failure>>;

impl Sim {
    /// Crashes each process at each request that changes something, in three places: before it leaves, after it has left,
    /// and when its answer arrives. Gives the number of runs.
    ///
    /// # Errors
    /// The first run in which something was violated, or that ended otherwise than the undisturbed one.
    pub fn crash_at_every_write(&self, seed: u64) -> Verdict<u64> {
        let (sim, plain) = self.reference(seed)?;
        let at = |n, place: fn(u64) -> Moment| move |replica| vec![Fault::crash(replica, place(n), DOWN)];
        let mut runs = Runs::new(&sim, seed, plain.end.clone());
        for replica in 0..self.programs.len() {
            for n in 1..=plain.sent[replica].len() as u64 {
                for place in [Moment::BeforeWrite, Moment::AfterWrite, Moment::BeforeAnswer] {
                    runs.one(&at(n, place)(replica))?;
                }
            }
        }
        runs.end()
    }

    /// Crashes each process after each of its writes, and lets it start from a cache that has heard of nothing since one of
    /// the last four commits before it, as a watch cache that lags may show it. First states are asked for as
    /// [`FirstState::Cached`], whatever the programs say, since others cannot be stale. Gives the number of runs.
    ///
    /// # Errors
    /// As [`crash_at_every_write`](Self::crash_at_every_write).
    pub fn stale_read_at_every_restart(&self, seed: u64) -> Verdict<u64> {
        let mut stale = self.clone().first_state(FirstState::Cached);
        if stale.followers.is_empty() {
            stale = stale.follower(Duration::from_millis(1)..Duration::from_millis(5));
        }
        let (sim, plain) = stale.reference(seed)?;
        let mut runs = Runs::new(&sim, seed, plain.end.clone());
        for replica in 0..self.programs.len() {
            for (n, commits) in (1..).zip(&plain.sent[replica]) {
                for back in 0..BACK.min(*commits) {
                    let lead =
                        |server, when| Fault { when, what: What::Lead { replica, server, lasts: STALE } };
                    let left = When::In { replica, moment: Moment::AfterWrite(n) };
                    let freeze = What::Freeze { server: 1, lasts: STALE };
                    runs.one(&[
                        lead(0, When::At(Time::ZERO)),
                        Fault { when: When::Commit(commits - back), what: freeze },
                        lead(1, left),
                        Fault::crash(replica, Moment::BeforeAnswer(n), DOWN),
                    ])?;
                }
            }
        }
        runs.end()
    }

    /// From each commit on, for a short, a longer and a long while, each process sees no events, and then only what they
    /// came to: the watches break, their history is forgotten, and a list shows the rest. Gives the number of runs.
    ///
    /// # Errors
    /// As [`crash_at_every_write`](Self::crash_at_every_write).
    pub fn hide_every_event(&self, seed: u64) -> Verdict<u64> {
        let (sim, plain) = self.reference(seed)?;
        let mut runs = Runs::new(&sim, seed, plain.end.clone());
        for replica in 0..self.programs.len() {
            for commit in 1..=plain.commits {
                for millis in [50, 1_500, 10_000] {
                    let what = What::Blind { replica, lasts: Duration::from_millis(millis) };
                    runs.one(&[Fault { when: When::Commit(commit), what }])?;
                }
            }
        }
        runs.end()
    }

    /// Refuses each update and patch with a conflict, one a run; then, in one run, every second of them. Gives the number
    /// of runs.
    ///
    /// # Errors
    /// As [`crash_at_every_write`](Self::crash_at_every_write).
    pub fn conflict_at_every_update(&self, seed: u64) -> Verdict<u64> {
        let (sim, plain) = self.reference(seed)?;
        let mut runs = Runs::new(&sim, seed, plain.end.clone());
        let writes = plain.sent_in_all();
        for n in 0..writes {
            runs.one(&[ill(Ill::Conflict, n)])?;
        }
        // One that was refused is passed by those that come after it in the list.
        let all: Vec<Fault> = (0..writes.max(1) * 2).map(|n| ill(Ill::Conflict, n.min(1))).collect();
        runs.one(&all)?;
        runs.end()
    }

    /// Performs each request that changes something twice, as a proxy does that tries again, one a run; and reconciles
    /// every key once more after each commit. Gives the number of runs.
    ///
    /// # Errors
    /// As [`crash_at_every_write`](Self::crash_at_every_write).
    pub fn repeat_every_write(&self, seed: u64) -> Verdict<u64> {
        let (sim, plain) = self.reference(seed)?;
        let mut runs = Runs::new(&sim, seed, plain.end.clone());
        for n in 0..plain.sent_in_all() {
            runs.one(&[ill(Ill::Twice, n)])?;
        }
        for replica in 0..self.programs.len() {
            let again = |commit| Fault { when: When::Commit(commit), what: What::Trigger { replica } };
            runs.one(&(1..=plain.commits).map(again).collect::<Vec<_>>())?;
        }
        runs.end()
    }

    /// Fails each request that changes something, one a run: it is refused by an ill or a busy server, it is lost, or it is
    /// done and its answer is lost. Gives the number of runs.
    ///
    /// # Errors
    /// As [`crash_at_every_write`](Self::crash_at_every_write).
    pub fn fail_every_write(&self, seed: u64) -> Verdict<u64> {
        let (sim, plain) = self.reference(seed)?;
        let mut runs = Runs::new(&sim, seed, plain.end.clone());
        for how in [Ill::Error, Ill::Unavailable, Ill::TooMany(1), Ill::Drop, Ill::DropAfter] {
            for verb in ["create", "update", "patch", "delete"] {
                for n in 0..plain.sent_in_all() {
                    let Fault { when, what: What::Answer { ill, replica, skip, times, .. } } = ill(how, n)
                    else {
                        continue;
                    };
                    let verb = Some(verb.to_owned());
                    let met =
                        runs.one(&[Fault { when, what: What::Answer { ill, verb, replica, skip, times } }])?;
                    if u64::from(skip) >= met.sent_in_all() {
                        break;
                    }
                }
            }
        }
        runs.end()
    }

    /// All of the above. Gives the number of runs.
    ///
    /// # Errors
    /// As [`crash_at_every_write`](Self::crash_at_every_write).
    pub fn every_adversary(&self, seed: u64) -> Verdict<u64> {
        Ok(self.crash_at_every_write(seed)?
            + self.stale_read_at_every_restart(seed)?
            + self.hide_every_event(seed)?
            + self.conflict_at_every_update(seed)?
            + self.repeat_every_write(seed)?
            + self.fail_every_write(seed)?)
    }

    /// A cluster that is asked for `a`, and for `b` when it has had time to settle, must end as one that was asked for `b`
    /// at once. Both must say all of what they want, and take away what only the other one has.
    ///
    /// # Errors
    /// The run in which something was violated, or that ended with something else than the fresh `b`.
    pub fn a_to_b(
        &self,
        seed: u64,
        a: impl Fn(&mut Cluster<'_>) + Send + Sync + 'static,
        b: impl Fn(&mut Cluster<'_>) + Clone + Send + Sync + 'static,
    ) -> Verdict<Report> {
        let fresh = self.clone().given(b.clone());
        let (_, fresh) = fresh.reference(seed)?;
        let mut sim = self.clone().given(a).change(THEN, b);
        sim.wants_end = true;
        sim.judge(seed, &faults_of_environment().unwrap_or_default(), Some(&fresh.end))
    }

    /// One run with these faults, which must end as the undisturbed run of this seed did.
    ///
    /// # Errors
    /// As [`run_with`](Self::run_with), and `end state`.
    pub fn run_to_same_end(&self, seed: u64, faults: &[Fault]) -> Verdict<Report> {
        let (sim, plain) = self.reference(seed)?;
        sim.judge(seed, faults, Some(&plain.end))
    }

    /// The undisturbed run.
    fn reference(&self, seed: u64) -> Verdict<(Self, Report)> {
        let mut sim = self.clone();
        sim.wants_end = true;
        let report = sim.judge(seed, &[], None)?;
        Ok((sim, report))
    }
}

/// The n-th request that it means, from 0.
fn ill(ill: Ill, n: u64) -> Fault {
    let skip = u32::try_from(n).unwrap_or(u32::MAX);
    let what = What::Answer { ill, verb: None, replica: None, skip, times: 1 };
    Fault { when: When::At(Time::ZERO), what }
}

/// Runs that are compared with one.
struct Runs<'a> {
    sim: &'a Sim,
    seed: u64,
    end: EndState,
    n: u64,
    /// Only these faults are wanted.
    only: Option<Vec<Fault>>,
}

impl<'a> Runs<'a> {
    fn new(sim: &'a Sim, seed: u64, end: EndState) -> Self {
        Self { sim, seed, end, n: 0, only: faults_of_environment() }
    }

    fn one(&mut self, faults: &[Fault]) -> Verdict<Report> {
        self.n += 1;
        if self.only.as_ref().is_some_and(|only| only != faults) {
            return Ok(Report::default());
        }
        self.sim.judge(self.seed, faults, Some(&self.end))
    }

    fn end(self) -> Verdict<u64> {
        Ok(self.n)
    }
}
