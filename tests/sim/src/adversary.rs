//! Systematic adversaries: not what chance brings, but every place at which one thing can go wrong, one after the other
//! (after Sieve, OSDI 2022, and Acto, SOSP 2023). Each is one call on a [`Sim`]; each run must pass all oracles of the
//! simulator and end as the undisturbed run did.

use std::time::Duration;

use steersman_core::time::Time;
use steersman_core::watcher::FirstState;

use crate::cluster::Cluster;
use crate::end::EndState;
use crate::failure::Failure;
use crate::faults::{Fault, Ill, Moment, What, When};
use crate::judge::Case;
use crate::replay::Replay;
use crate::sim::{Report, Sim};

/// How long a process is down that an adversary kills.
const DOWN: Duration = Duration::from_millis(500);
/// How long a stale cache stays stale: longer than a start and a few reconciles.
const STALE_FOR: Duration = Duration::from_secs(20);
/// How far back a stale cache is at most, in commits before a write of the process.
const BACK: u64 = 4;
/// When the second state is asked for, in [`Sim::a_to_b`].
const THEN: Duration = Duration::from_secs(60);

const CRASH: &str = "crash_at_every_write";
const STALE: &str = "stale_read_at_every_restart";
const HIDE: &str = "hide_every_event";
const CONFLICT: &str = "conflict_at_every_update";
const REPEAT: &str = "repeat_every_write";
const FAIL: &str = "fail_every_write";
const A_TO_B: &str = "a_to_b";
const SAME_END: &str = "run_to_same_end";
/// All who compare a run with another one.
pub(crate) const NAMES: [&str; 8] = [CRASH, STALE, HIDE, CONFLICT, REPEAT, FAIL, A_TO_B, SAME_END];

type Verdict<T> = Result<T, Box<Failure>>;
type Adversary = fn(&Sim, u64) -> Verdict<u64>;

impl Sim {
    /// Crashes each process at each request that changes something, in three places: before it leaves, after it has left,
    /// and when its answer arrives. Gives the number of runs.
    ///
    /// # Errors
    /// The first run in which something was violated, or that ended otherwise than the undisturbed one.
    pub fn crash_at_every_write(&self, seed: u64) -> Verdict<u64> {
        let at = |n, place: fn(u64) -> Moment| move |replica| vec![Fault::crash(replica, place(n), DOWN)];
        self.adversary(CRASH, seed, |runs, plain| {
            for replica in 0..self.programs.len() {
                for n in 1..=plain.sent[replica].len() as u64 {
                    for place in [Moment::BeforeWrite, Moment::AfterWrite, Moment::BeforeAnswer] {
                        runs.one(&at(n, place)(replica))?;
                    }
                }
            }
            Ok(())
        })
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
        stale.adversary(STALE, seed, |runs, plain| {
            for replica in 0..self.programs.len() {
                for (n, commits) in (1..).zip(&plain.sent[replica]) {
                    for back in 0..BACK.min(*commits) {
                        let lead = |server, when| Fault {
                            when,
                            what: What::Lead { replica, server, lasts: STALE_FOR },
                        };
                        let left = When::In { replica, moment: Moment::AfterWrite(n) };
                        let freeze = What::Freeze { server: 1, lasts: STALE_FOR };
                        runs.one(&[
                            lead(0, When::At(Time::ZERO)),
                            Fault { when: When::Commit(commits - back), what: freeze },
                            lead(1, left),
                            Fault::crash(replica, Moment::BeforeAnswer(n), DOWN),
                        ])?;
                    }
                }
            }
            Ok(())
        })
    }

    /// From each commit on, for a short, a longer and a long while, each process sees no events, and then only what they
    /// came to: the watches break, their history is forgotten, and a list shows the rest. Gives the number of runs.
    ///
    /// # Errors
    /// As [`crash_at_every_write`](Self::crash_at_every_write).
    pub fn hide_every_event(&self, seed: u64) -> Verdict<u64> {
        self.adversary(HIDE, seed, |runs, plain| {
            for replica in 0..self.programs.len() {
                for commit in 1..=plain.commits {
                    for millis in [50, 1_500, 10_000] {
                        let what = What::Blind { replica, lasts: Duration::from_millis(millis) };
                        runs.one(&[Fault { when: When::Commit(commit), what }])?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Refuses each update and patch with a conflict, one a run; then, in one run, every second of them. Gives the number
    /// of runs.
    ///
    /// # Errors
    /// As [`crash_at_every_write`](Self::crash_at_every_write).
    pub fn conflict_at_every_update(&self, seed: u64) -> Verdict<u64> {
        self.adversary(CONFLICT, seed, |runs, plain| {
            let writes = plain.sent_in_all();
            for n in 0..writes {
                runs.one(&[ill(Ill::Conflict, n)])?;
            }
            // One that was refused is passed by those that come after it in the list.
            let all: Vec<Fault> = (0..writes.max(1) * 2).map(|n| ill(Ill::Conflict, n.min(1))).collect();
            runs.one(&all)?;
            Ok(())
        })
    }

    /// Performs each request that changes something twice, as a proxy does that tries again, one a run; and reconciles
    /// every key once more after each commit. Gives the number of runs.
    ///
    /// # Errors
    /// As [`crash_at_every_write`](Self::crash_at_every_write).
    pub fn repeat_every_write(&self, seed: u64) -> Verdict<u64> {
        self.adversary(REPEAT, seed, |runs, plain| {
            for n in 0..plain.sent_in_all() {
                runs.one(&[ill(Ill::Twice, n)])?;
            }
            for replica in 0..self.programs.len() {
                let again = |commit| Fault { when: When::Commit(commit), what: What::Trigger { replica } };
                runs.one(&(1..=plain.commits).map(again).collect::<Vec<_>>())?;
            }
            Ok(())
        })
    }

    /// Fails each request that changes something, one a run: it is refused by an ill or a busy server, it is lost, or it is
    /// done and its answer is lost. Gives the number of runs.
    ///
    /// # Errors
    /// As [`crash_at_every_write`](Self::crash_at_every_write).
    pub fn fail_every_write(&self, seed: u64) -> Verdict<u64> {
        self.adversary(FAIL, seed, |runs, plain| {
            for how in [Ill::Error, Ill::Unavailable, Ill::TooMany(1), Ill::Drop, Ill::DropAfter] {
                for verb in ["create", "update", "patch", "delete"] {
                    for n in 0..plain.sent_in_all() {
                        let Fault { when, what: What::Answer { ill, replica, skip, times, .. } } =
                            ill(how, n)
                        else {
                            continue;
                        };
                        let verb = Some(verb.to_owned());
                        let met = runs
                            .one(&[Fault { when, what: What::Answer { ill, verb, replica, skip, times } }])?;
                        if u64::from(skip) >= met.sent_in_all() {
                            break;
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// All of the above. Gives the number of runs.
    ///
    /// # Errors
    /// As [`crash_at_every_write`](Self::crash_at_every_write).
    pub fn every_adversary(&self, seed: u64) -> Verdict<u64> {
        let all: [(&str, Adversary); 6] = [
            (CRASH, Self::crash_at_every_write),
            (STALE, Self::stale_read_at_every_restart),
            (HIDE, Self::hide_every_event),
            (CONFLICT, Self::conflict_at_every_update),
            (REPEAT, Self::repeat_every_write),
            (FAIL, Self::fail_every_write),
        ];
        let replay = Replay::of_environment();
        let names = all.map(|(name, _)| name);
        all.into_iter()
            .filter(|(name, _)| replay.wants(name, &names))
            .try_fold(0, |runs, (_, run)| Ok(runs + run(self, seed)?))
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
        sim.judge(Case { seed, faults: &[], end: Some(&fresh.end), adversary: Some(A_TO_B) })
    }

    /// One run with these faults, which must end as the undisturbed run of this seed did.
    ///
    /// # Errors
    /// As [`run_with`](Self::run_with), and `end state`.
    pub fn run_to_same_end(&self, seed: u64, faults: &[Fault]) -> Verdict<Report> {
        let (sim, plain) = self.reference(seed)?;
        sim.judge(Case { seed, faults, end: Some(&plain.end), adversary: Some(SAME_END) })
    }

    /// The undisturbed run.
    fn reference(&self, seed: u64) -> Verdict<(Self, Report)> {
        let mut sim = self.clone();
        sim.wants_end = true;
        let report = sim.judge(Case { seed, faults: &[], end: None, adversary: None })?;
        Ok((sim, report))
    }

    /// The undisturbed run, then those that must end as it does; or the one of them that somebody wants to see again.
    fn adversary(
        &self,
        name: &'static str,
        seed: u64,
        all: impl FnOnce(&mut Runs<'_>, &Report) -> Verdict<()>,
    ) -> Verdict<u64> {
        let (sim, plain) = self.reference(seed)?;
        let mut runs = Runs { sim: &sim, seed, end: &plain.end, name, n: 0 };
        if Replay::of_environment().means(seed, Some(name)) {
            // Whatever it asks for, it gets that one.
            runs.one(&[])?;
        } else {
            all(&mut runs, &plain)?;
        }
        Ok(runs.n)
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
    end: &'a EndState,
    name: &'static str,
    n: u64,
}

impl Runs<'_> {
    fn one(&mut self, faults: &[Fault]) -> Verdict<Report> {
        self.n += 1;
        let Self { seed, end, name, .. } = *self;
        self.sim.judge(Case { seed, faults, end: Some(end), adversary: Some(name) })
    }
}
